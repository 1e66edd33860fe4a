"""Views of results, scenarios and cards in notebooks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from matplotlib import pyplot
from sweep_support import write_scenario

import anabranch as ab
from anabranch.results import Results


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    scenario = write_scenario(tmp_path_factory.mktemp("scenario"))
    return ab.sweep(scenario, {"path.path-2.loss": [0, 0.02]}, cache=None)


@pytest.fixture(scope="module")
def one_point(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return ab.run(write_scenario(tmp_path_factory.mktemp("scenario")), schemes=["cmt"], seeds=2)


def cells(html: str) -> list[str]:
    return re.findall(r"<t[hd](?: [^>]*)?>(.*?)</t[hd]>", html)


def test_frame_begins_with_its_distinguishing_columns(results: Results, one_point: Results) -> None:
    assert list(results.to_pandas().columns)[:4] == ["path.path-2.loss", "scheme", "seed", "goodput_kbps"]
    assert list(results.to_pandas().columns)[-2:] == ["profile", "run"]
    assert list(results.to_pandas("paths").columns)[:5] == [
        "path.path-2.loss", "scheme", "seed", "path", "data_packets",
    ]  # fmt: skip
    columns = list(one_point.to_pandas().columns)
    assert (columns[0], columns[-3:]) == ("seed", ["scheme", "profile", "run"])


def test_a_summary_has_a_row_for_each_point_and_a_column_for_each_scheme(results: Results, one_point: Results) -> None:
    table = results.summary()
    assert list(table.columns) == ["cmt", "cmt-pf"]
    assert list(table.index) == [0, 0.02]
    frame = results.to_pandas().query("scheme == 'cmt' and `path.path-2.loss` == 0.02")
    assert table.loc[0.02, "cmt"] == str(ab.statistics.mean_interval(frame.goodput_kbps))
    assert list(results.summary("share").index.names) == ["path.path-2.loss", "path"]
    assert list(one_point.summary("retransmissions").index) == ["cmt"]
    with pytest.raises(ab.errors.StatisticsError):
        results.summary("nonsense")


def test_results_are_shown_as_means_with_intervals_and_without_hashes(results: Results, one_point: Results) -> None:
    html = results._repr_html_()
    assert cells(html)[:3] == ["path.path-2.loss", "cmt", "cmt-pf"]
    assert "±" in html
    assert "12 runs, 3 seeds" in html
    assert not re.search(r"[0-9a-f]{32}", html)
    assert cells(one_point._repr_html_())[:3] == ["scheme", "goodput_kbps", "cmt"]
    assert repr(results) == "<Results of two: 12 runs of cmt, cmt-pf over path.path-2.loss>"


def test_text_from_others_is_escaped(results: Results) -> None:
    nasty = '<script>alert("1")</script>'
    renamed = Results(results.runs, results.paths, results.flows, {**results.manifest, "scenario_name": nasty})
    table = ab.Scenario(
        name=nasty,
        run=ab.RunSettings(duration="1 s"),
        paths=[ab.Path(rate="1 Mbit/s", delay="1 ms")],
    )
    for html in (renamed._repr_html_(), table._repr_html_()):
        assert "<script>" not in html
        assert "&lt;script&gt;" in html


def test_a_scenario_is_shown_with_its_paths_and_defaults(tmp_path: Path) -> None:
    html = ab.Scenario.read(write_scenario(tmp_path))._repr_html_()
    shown = cells(html)
    assert shown[:3] == ["path", "rate", "delay"]
    assert {"path-1", "10 Mbit/s", "45 ms", "50 packets"} <= set(shown)
    assert "schemes cmt, cmt-pf, 3 seeds, profile rfc9260" in html


def test_a_card_is_shown_with_its_parameters() -> None:
    html = ab.schemes()["cmt"]._repr_html_()
    assert {"trigger", "3"} <= set(cells(html))
    assert "Concurrent multipath transfer" in html
    for card in ab.schemes():
        assert card._repr_html_().startswith("<p><b>")


def test_results_draw_lines_for_swept_keys_and_bars_otherwise(results: Results, one_point: Results) -> None:
    lines = results.plot()
    assert len(lines.lines) == 2
    assert lines.get_ylim()[0] == 0
    bars = one_point.plot("retransmissions", title="two seeds")
    assert len(bars.patches) == 1
    assert bars.get_title(loc="left") == "two seeds"
    pyplot.close("all")


def test_results_write_their_report(results: Results, tmp_path: Path) -> None:
    page = results.report(tmp_path / "losses.html", timeline=["cmt"], seed=2)
    assert page == tmp_path / "losses.html"
    assert ab.report(results, tmp_path / "same.html", timeline=["cmt"], seed=2).read_bytes() == page.read_bytes()


def test_the_default_figure_of_tsns_shows_single_chunks(tmp_path: Path) -> None:
    run = ab.run(ab.Scenario.read(write_scenario(tmp_path, "20 s")), "cmt")
    start, end = ab.plot_tsn(run).get_xlim()
    tsns = run.series.tsn()
    sent = tsns[(tsns["event"] == "sent") & tsns["time_s"].between(start, end)]
    assert 290 <= len(sent) <= 330
    dropped = tsns[~tsns["event"].isin(["sent", "received"])]
    assert dropped["time_s"].between(start, end).any()
    whole = ab.plot_tsn(run, between=(0, run.series.end_s)).get_xlim()
    assert whole[1] - whole[0] > 15 > 3 > end - start
    pyplot.close("all")
