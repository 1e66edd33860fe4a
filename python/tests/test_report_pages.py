"""Content of reports, which are one file that loads nothing."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from report_samples import LOSSES, OUTAGE, swept, write_traces

import anabranch as ab
import anabranch.reporting.timeline.payload as payload_module
from anabranch.errors import ReportError, ResultsError, TraceError
from anabranch.reporting import ChoiceError, ReportWarning, charts, report, results_page, run_index, tables
from anabranch.reporting.charts import Charts, charts_of
from anabranch.reporting.tables import failure_tables, result_tables
from anabranch.results import Results
from anabranch.simulation import run
from anabranch.statistics import as_text, paired_difference, summary
from anabranch.version import engine

MEGABYTE = 1_000_000
EMPTY = {"meta", "link", "img", "br", "input", "hr", "base"}
LOADS = ("src", "href", "data", "poster", "action", "srcset", "xlink:href", "background", "formaction")


class Reading(HTMLParser):
    """Parsed page: its elements in order, the text of each kind of element, and faults of its tags."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.texts: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag == "tr":
            self.rows.append([])
        if tag not in EMPTY:
            self.open.append(tag)
            self.texts.setdefault(tag, []).append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        if tag in ("td", "th") and self.rows:
            self.rows[-1].append(self.texts[tag][-1])

    def handle_data(self, data: str) -> None:
        for tag in set(self.open):
            self.texts[tag][-1] += data

    def row(self, *beginning: str) -> list[str]:
        """Returns the first row of a table that begins with these cells."""
        return next(row for row in self.rows if row[: len(beginning)] == list(beginning))

    @property
    def timeline(self) -> dict[str, Any]:
        content = next(text for text in self.texts["script"] if text.startswith("{"))
        return json.loads(content)  # type: ignore[no-any-return]

    @property
    def labels(self) -> list[str]:
        return [": ".join(track["names"]) for track in self.timeline["tracks"]]

    @property
    def words(self) -> str:
        return re.sub(r"\s+", " ", self.texts["main"][0])


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_traces(tmp_path_factory.mktemp("traces"))


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    return swept(tmp_path_factory.mktemp("swept"))


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory, traces: Path, results: Results) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reports")
    report(traces, folder / "traces.html")
    report(results, folder / "results.html")
    return {name: (folder / f"{name}.html").read_text(encoding="utf-8") for name in ("traces", "results")}


@pytest.fixture(scope="module")
def of_results(reports: dict[str, str]) -> Reading:
    return Reading(reports["results"])


@pytest.fixture(scope="module")
def of_traces(reports: dict[str, str]) -> Reading:
    return Reading(reports["traces"])


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Disables the figures of reports, which take most of their time."""
    monkeypatch.setattr(results_page, "charts_of", lambda results, baseline: Charts((), (), ()))


def read(source: Results | Path, tmp_path: Path, **arguments: Any) -> Reading:
    return Reading(report(source, tmp_path / "report.html", **arguments).read_text(encoding="utf-8"))


def replaced(results: Results, column: str, values: pa.Array) -> Results:
    """Returns results with other values in a column of runs."""
    runs = results.runs.set_column(results.runs.column_names.index(column), results.runs.schema.field(column), values)
    return Results(runs, results.paths, results.flows, results.manifest)


@pytest.mark.parametrize("name", ["traces", "results"])
def test_report_loads_no_external_resource(reports: dict[str, str], name: str) -> None:
    page = Reading(reports[name])
    for tag, attributes in page.elements:
        assert tag not in ("link", "base", "iframe", "object", "embed", "img", "image")
        for attribute in LOADS:
            assert re.fullmatch(r"#.*|", attributes.get(attribute, "")), (tag, attributes)
        for value in re.findall(r"url\(([^)]*)", attributes.get("style", "") + attributes.get("clip-path", "")):
            assert value.startswith("#")
    assert not re.search(r"@import|url\(", page.texts["style"][0])


@pytest.mark.parametrize("name", ["traces", "results"])
def test_content_policy_allows_only_scripts_with_listed_hashes(reports: dict[str, str], name: str) -> None:
    page = Reading(reports[name])
    (policy,) = [attributes["content"] for tag, attributes in page.elements if "http-equiv" in attributes]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert len(re.findall(r"'sha256-[^']+'", rules["script-src"])) == 2
    assert "unsafe" not in rules["script-src"]
    assert "http" not in policy


def test_the_same_source_gives_the_same_bytes(
    reports: dict[str, str], results: Results, traces: Path, tmp_path: Path
) -> None:
    assert report(results, tmp_path / "a.html").read_text(encoding="utf-8") == reports["results"]
    assert report(traces, tmp_path / "b.html").read_text(encoding="utf-8") == reports["traces"]


def test_results_and_the_folder_they_are_written_to_give_the_same_report(
    reports: dict[str, str], results: Results, tmp_path: Path
) -> None:
    results.write(tmp_path / "here")
    written = report(tmp_path / "here")
    assert written == tmp_path / "here" / "report.html"
    assert written.read_text(encoding="utf-8") == reports["results"]


def test_identifiers_are_there_once(of_results: Reading) -> None:
    identifiers = [attributes["id"] for _, attributes in of_results.elements if "id" in attributes]
    assert len(identifiers) == len(set(identifiers)) > 100


def test_the_summary_has_the_means_and_intervals_of_the_statistics(of_results: Reading, results: Results) -> None:
    means = summary(results, "goodput_kbps")
    for row, text in zip(means.to_dict("records"), as_text(means), strict=True):
        loss = f"{row['path.path-2.loss']:g}"
        shown = of_results.row(loss, row["scheme"], "3")
        assert shown[3] == text.removesuffix(" (n = 3)")
    assert {row["kind"] for row in means.to_dict("records")} == {"interval"}


def test_goodput_stands_as_schemes_by_points(of_results: Reading, results: Results) -> None:
    first = of_results.rows[0]
    assert [cell.replace("kbit/s", "") for cell in first] == ["scheme", "0", "0.05"]
    of_cmt = as_text(summary(results, "goodput_kbps").query("scheme == 'cmt'"))
    assert of_results.row("cmt") == ["cmt", *(text.removesuffix(" (n = 3)") for text in of_cmt)]


def test_differences_to_the_baseline_are_those_of_pairs(of_results: Reading, results: Results) -> None:
    differences = paired_difference(results, "cmt")
    for row, text in zip(differences.to_dict("records"), as_text(differences), strict=True):
        rows = [shown for shown in of_results.rows if shown[:2] == [f"{row['path.path-2.loss']:g}", row["scheme"]]]
        assert any(text.removesuffix(" (n = 3)") in shown for shown in rows)
    assert "Goodput compared with cmt" in of_results.words


def test_shares_of_the_paths_add_up(of_results: Reading) -> None:
    head = next(row for row in of_results.rows if row[-2:] == ["path-1%", "path-2%"])
    start = of_results.rows.index(head) + 1
    for row in of_results.rows[start : start + 6]:
        assert sum(float(cell.split()[0]) for cell in row[-2:]) == pytest.approx(100, abs=0.02)


def rows_of(results: Results, title: str) -> list[tuple[str, ...]]:
    return next(list(table.rows) for table in result_tables(results, None) if table.title == title)


def test_single_seed_is_reported(tmp_path: Path) -> None:
    for row in rows_of(swept(tmp_path, seeds=1), "Figures of the runs"):
        assert "(n = 1)" in row[3]
        assert "±" not in row[3]


def test_identical_runs_are_marked_deterministic(tmp_path: Path) -> None:
    results = swept(tmp_path, LOSSES.replace("loss = 0.01", "loss = 0"), over={"scheme": ["cmt"]})
    ((scheme, n, goodput, *_),) = rows_of(results, "Figures of the runs")
    assert (scheme, n) == ("cmt", "3")
    assert goodput.endswith(" (deterministic)")


def test_figures_are_drawn_and_can_be_drawn_again_by_the_lines_given(of_results: Reading, results: Results) -> None:
    captions = of_results.texts["figcaption"]
    drawings = [attributes for tag, attributes in of_results.elements if tag == "svg"]
    assert len(captions) == len(drawings) >= 3
    assert captions[0] == "Goodput over loss on path-2"
    code = next(text for text in of_results.texts["pre"] if "anabranch.plot_metric(" in text)
    lines = re.findall(r"anabranch\.(plot_\w+)\(results, (.*)\)", code)
    assert len(lines) == len(drawings)
    from matplotlib import pyplot

    import anabranch.figures

    for function, arguments in lines:
        axes = eval(f"draw(results, {arguments})", {"draw": getattr(anabranch.figures, function), "results": results})
        assert axes.has_data()
        pyplot.close(axes.figure)


GRID = {
    "path.path-2.delay": ["10 ms", "40 ms", "90 ms"],
    "association.recv_buffer": ["16 KiB", "64 KiB"],
    "scheme": ["cmt"],
}


def test_several_swept_keys_give_a_figure_for_each_further_value(tmp_path: Path) -> None:
    captions = [figure.caption for figure in charts_of(swept(tmp_path, over=GRID, seeds=1), None).figures]
    assert [caption for caption in captions if caption.startswith("Goodput")] == [
        "Goodput over one-way delay on path-2, where association.recv_buffer = 16 KiB",
        "Goodput over one-way delay on path-2, where association.recv_buffer = 64 KiB",
    ]


def test_more_figures_than_there_is_room_for_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "MAX_FIGURES", 1)
    drawn = charts_of(swept(tmp_path, over=GRID, seeds=1), None)
    assert len(drawn.figures) == len(drawn.code) == 1
    (note,) = drawn.notes
    assert re.match(r"[1-9] more figures? would be like these", note)


def test_text_values_give_bars(tmp_path: Path) -> None:
    results = swept(tmp_path, over={"run.profile": ["rfc9260", "ns2"], "scheme": ["cmt", "sctp"]}, seeds=1)
    drawn = charts_of(results, "cmt")
    assert drawn.notes == ()
    assert drawn.code[0] == "anabranch.plot_bars(results, 'goodput_kbps', x='run.profile')"


def test_a_file_transfer_shows_its_time(tmp_path: Path) -> None:
    text = LOSSES.replace('duration = "2 s"', 'stop = "transfer"\nduration = "60 s"')
    text += '[[flow]]\nname = "upload"\nkind = "file"\nsize = "200 kB"\n'
    results = swept(tmp_path, text, over={"scheme": ["cmt", "sctp"]})
    times = as_text(summary(results, "transfer_s"))
    assert [(row[1], row[-1]) for row in rows_of(results, "Flows")] == [
        ("upload", text.removesuffix(" (n = 3)")) for text in times
    ]
    assert "Transfer time" in [figure.caption for figure in charts_of(results, None).figures]


def test_failures_are_listed(tmp_path: Path) -> None:
    text = LOSSES.replace('duration = "2 s"', 'stop = "transfer"\nduration = "500 ms"')
    text += '[[flow]]\nkind = "file"\nsize = "50 MB"\n'
    (table,) = failure_tables(swept(tmp_path, text, over={"scheme": ["cmt"]}, seeds=2))
    assert table.about[0].startswith("2 of 2 runs failed.")
    assert [row[:2] for row in table.rows] == [("cmt", "1"), ("cmt", "2")]
    assert table.rows[0][2].startswith("flow `flow-1`: not finished at the end of the run")


def test_points_that_tables_have_no_room_for_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = swept(tmp_path, over={"path.path-2.loss": [0, 0.01, 0.02], "scheme": ["cmt", "sctp"]}, seeds=2)
    everything = {table.title: table.rows for table in result_tables(results, "cmt")}
    monkeypatch.setattr(tables, "MAX_ROWS", 5)
    for table in result_tables(results, "cmt"):
        if not table.title.startswith("Goodput over"):
            kept = len(everything[table.title]) * 2 // 3
            assert table.rows == everything[table.title][:kept]
            assert table.notes[-1] == "The first 2 of 3 points. results.to_pandas() has all of them."


def test_results_without_failures_list_none(results: Results) -> None:
    assert failure_tables(results) == ()


def test_report_names_scenario_and_version(of_results: Reading, results: Results) -> None:
    here = engine()
    facts = of_results.texts["dl"][-1]
    for text in (here.version, here.commit, here.fingerprint, "cmt, cmt-pf, sctp", "3: 1 to 3", "0, 0.05", "losses"):
        assert text in facts
    assert results.manifest["source"] in of_results.texts["pre"]
    assert results.manifest["scenario"] in of_results.texts["pre"]


def test_the_plan_in_a_report_makes_the_same_results(of_results: Reading, results: Results, tmp_path: Path) -> None:
    from anabranch.sweeps import sweep
    from anabranch.sweeps.plan import read_plan

    scenario, plan_text = of_results.texts["pre"][:2]
    (tmp_path / "losses.toml").write_text(scenario, encoding="utf-8")
    (tmp_path / "plan.toml").write_text(plan_text, encoding="utf-8")
    plan = read_plan(tmp_path / "plan.toml")
    again = sweep(plan.scenario, plan.over, plan.seeds, overrides=plan.overrides, until=plan.until, cache=None)
    assert again.runs.equals(results.runs)
    assert again.manifest == results.manifest


@pytest.mark.usefixtures("undrawn")
def test_keys_that_go_together_stay_together_in_the_plan(tmp_path: Path) -> None:
    over = {("path.path-1.delay", "path.path-2.delay"): [("10 ms", "20 ms"), ("10 ms", "40 ms")], "scheme": ["cmt"]}
    results = swept(tmp_path, over=over, seeds=[4, 7], overrides={"association.recv_buffer": "32 KiB"})
    page = read(results, tmp_path)
    from anabranch.sweeps import sweep
    from anabranch.sweeps.plan import read_plan

    (tmp_path / "plan.toml").write_text(page.texts["pre"][1], encoding="utf-8")
    plan = read_plan(tmp_path / "plan.toml")
    again = sweep(plan.scenario, plan.over, plan.seeds, overrides=plan.overrides, until=plan.until, cache=None)
    assert again.manifest == results.manifest


def test_repeated_identical_runs_are_reported(of_results: Reading) -> None:
    assert "with the same figures as in the results" in of_results.words
    assert "Read this first" not in of_results.words


@pytest.mark.usefixtures("undrawn")
def test_a_run_that_is_not_the_same_again_is_a_visible_warning(results: Results, tmp_path: Path) -> None:
    changed = replaced(results, "goodput_kbps", pc.add(results.runs["goodput_kbps"], 1.0))
    with pytest.warns(ReportWarning) as caught:
        page = read(changed, tmp_path, timeline=["cmt"])
    assert any("cmt, seed 1, path.path-2.loss = 0: run goodput_kbps is" in str(each.message) for each in caught)
    (warning,) = [text for text in page.texts["section"] if "Read this first" in text]
    stored = changed.runs["goodput_kbps"][0].as_py()
    assert f"run goodput_kbps is {stored} in the results and {stored - 1.0} now" in warning
    assert "1 of 1 run of the timeline" in warning
    assert "with the same figures as in the results" not in page.words


def test_a_timeline_shows_the_first_seed_of_all_schemes_at_the_first_point(of_results: Reading) -> None:
    assert of_results.labels == ["cmt", "cmt-pf", "sctp"]
    assert "seed 1 and path.path-2.loss = 0." in of_results.words


@pytest.mark.usefixtures("undrawn")
def test_runs_of_the_timeline_can_be_chosen(results: Results, tmp_path: Path) -> None:
    page = read(results, tmp_path, timeline=["cmt@path.path-2.loss=5 %", "all@path.path-2.loss=0"], seed=2)
    labels = page.labels
    assert labels == ["cmt @ 0.05", "cmt @ 0", "cmt-pf @ 0", "sctp @ 0"]
    again = run(_scenario(results, 0.05), "cmt", 2)
    sent = sum(path.data_packets for path in again.paths) * 1468
    lines = [line for line in page.timeline["lines"] if line["channel"] == "throughput" and line["tracks"] == [0]]
    assert _kilobits(lines, page.timeline["tick_s"]) == pytest.approx(sent * 8 / 1000, rel=0.01)


def _scenario(results: Results, loss: float) -> Any:
    from anabranch.scenario import Scenario

    return Scenario.parse(results.scenario_at({"path.path-2.loss": loss}))


def _kilobits(lines: list[dict[str, Any]], tick_s: float) -> float:
    import base64

    import numpy as np

    total = 0.0
    for line in lines:
        times = np.frombuffer(base64.b64decode(line["times"]), "<u4") * tick_s
        values = np.frombuffer(base64.b64decode(line["values"]), "<f4")
        total += float((values * np.diff(np.append(times, 2.0))).sum())
    return total


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"timeline": ["cmt-qa"]}, "no runs of `cmt-qa`; choose one of: `cmt`, `cmt-pf`, `sctp`"),
        ({"timeline": ["cmt@loss=1"]}, "`loss` was not swept; swept were: `path.path-2.loss`"),
        ({"timeline": ["cmt@path.path-2.loss=1"]}, "no `path.path-2.loss` of 1; choose one of: `0`, `0.05`"),
        ({"timeline": ["cmt@path.path-2.loss"]}, "found `path.path-2.loss` where KEY=VALUE should be"),
        ({"timeline": ["@path.path-2.loss=0"]}, "the scheme is missing"),
        ({"timeline": ["cmt@seed=9"]}, "no run has seed 9; choose one of: `1`, `2`, `3`"),
        ({"timeline": ["cmt@seed=-1"]}, "a seed is a number from 0 to 18446744073709551615, found `-1`"),
        ({"timeline": ["cmt@seed=" + "9" * 5000]}, "a seed is a number from 0 to 18446744073709551615"),
        ({"seed": 9}, "no run has seed 9; choose one of: `1`, `2`, `3`"),
    ],
)
def test_unknown_run_is_refused_with_available_ones(
    results: Results, tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ChoiceError, match=re.escape(message)):
        report(results, tmp_path / "report.html", **arguments)
    assert not (tmp_path / "report.html").exists()


@pytest.mark.usefixtures("undrawn")
def test_runs_of_several_points_and_seeds_are_on_one_timeline(results: Results, tmp_path: Path) -> None:
    page = read(results, tmp_path, timeline=["all@path.path-2.loss=0,seed=2", "cmt@path.path-2.loss=0.05"], seed=3)
    index = page.timeline["index"]
    assert index["keys"] == ["path.path-2.loss"]
    assert index["points"] == [["0"], ["0.05"]]
    assert (index["schemes"], index["seeds"]) == (["cmt", "cmt-pf", "sctp"], [1, 2, 3])
    assert [index["runs"][track["run"]] for track in page.timeline["tracks"]] == [
        *([0, scheme, 1] for scheme in range(3)),
        [1, 0, 2],
    ]
    assert index["made"] is None
    again = read(results, tmp_path, timeline=index["present"][1::2])
    assert again.labels == page.labels
    assert f"anabranch report results {' '.join(index['present'])}" in page.words


@pytest.mark.usefixtures("undrawn")
def test_runs_that_have_no_room_are_named(results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_page, "MAX_CHOSEN", 2)
    with pytest.warns(ReportWarning, match="sctp, seed 1, path.path-2.loss = 0"):
        page = read(results, tmp_path, timeline=["all"])
    assert page.labels == ["cmt", "cmt-pf"]
    assert "Omitted from the requested ones: sctp, seed 1, path.path-2.loss = 0." in page.words


@pytest.mark.usefixtures("undrawn")
def test_an_index_says_which_runs_were_never_made(results: Results, tmp_path: Path) -> None:
    part = Results(results.runs.slice(0, 17), results.paths, results.flows, results.manifest)
    index = read(part, tmp_path, timeline=["cmt"]).timeline["index"]
    assert len(index["made"]) == 17
    assert [1, 2, 2] not in index["made"]


def test_points_beyond_what_a_page_lists_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_index, "MAX_POINTS", 2)
    points = [{"k": str(value)} for value in range(6)]
    made = [(point, "cmt", 1) for point in points]
    index = run_index.index_of(["anabranch"], [], points, {"run": (points[4], "cmt", 1)}, made)
    assert index.points == [["0"], ["1"], ["4"]]
    assert index.runs == {"run": (2, 0, 0)}
    assert index.made is None
    assert index.notes == ("3 of 6 points are not in the list of points",)


@pytest.mark.usefixtures("undrawn")
def test_report_without_reproducible_timeline_has_all_other_parts(tmp_path: Path) -> None:
    payload = tmp_path / "payload.bin"
    payload.write_bytes(b"x" * 20_000)
    text = LOSSES.replace('duration = "2 s"', 'stop = "transfer"\nduration = "60 s"')
    text += '[[flow]]\nkind = "file"\npath = "payload.bin"\n'
    results = swept(tmp_path, text, over={"scheme": ["cmt"]}, seeds=1)
    with pytest.warns(ReportWarning, match="The report has no timeline"):
        page = read(results, tmp_path)
    assert "The report has no timeline, because a run could not be repeated" in page.words
    assert "payload.bin" in page.words
    assert "script" not in page.texts
    assert page.row("cmt", "flow-1", "cmt")


def test_results_without_runs_are_refused(results: Results, tmp_path: Path) -> None:
    empty = Results(results.runs.slice(0, 0), results.paths.slice(0, 0), results.flows.slice(0, 0), results.manifest)
    with pytest.raises(ReportError, match="the results have no runs"):
        report(empty, tmp_path / "report.html")


@pytest.mark.usefixtures("undrawn")
def test_stopped_sweep_is_reported_as_such(results: Results, tmp_path: Path) -> None:
    kept = results.runs.slice(0, 12)
    part = Results(kept, results.paths, results.flows, {**results.manifest, "missing": 6})
    keys = pc.is_in(results.paths["run"], value_set=kept["run"].combine_chunks())
    part = Results(kept, results.paths.filter(keys), results.flows.slice(0, 12), part.manifest)
    with pytest.warns(ReportWarning, match="6 runs"):
        page = read(part, tmp_path)
    assert "6 runs are missing, because the sweep was stopped" in page.words


NASTY = '</script><script>alert("1")</script><img src=x onerror=alert(2)> \'"& \u2028 \N{SNOWMAN}'


@pytest.mark.usefixtures("undrawn")
def test_text_from_scenarios_is_text_on_the_page(results: Results, tmp_path: Path) -> None:
    manifest = {**results.manifest, "scenario_name": NASTY, "source": f"# {NASTY}\n{results.manifest['source']}"}
    nasty = Results(results.runs, results.paths, results.flows, manifest)
    page = read(nasty, tmp_path, title=NASTY)
    assert page.texts["title"] == [NASTY]
    assert page.texts["h1"] == [NASTY]
    assert any(text.startswith(f"# {NASTY}") for text in page.texts["pre"])
    assert [tag for tag, _ in page.elements if tag == "script"] == ["script"] * 3
    assert "img" not in [tag for tag, _ in page.elements]


def test_text_from_traces_is_text_on_the_page_and_in_its_data(traces: Path, tmp_path: Path) -> None:
    folder = tmp_path / "traces"
    folder.mkdir()
    for file in (traces / "cmt-seed1").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    import tomli
    import tomli_w

    manifest = tomli.loads((folder / "run.toml").read_text(encoding="utf-8"))
    manifest["scheme"] = manifest["sender"][0]["scheme"] = NASTY
    (folder / "run.toml").write_text(tomli_w.dumps(manifest), encoding="utf-8")
    page = read(folder, tmp_path)
    assert page.labels == [NASTY]
    assert page.row(NASTY)
    assert [tag for tag, _ in page.elements if tag == "script"] == ["script"] * 3
    assert "img" not in [tag for tag, _ in page.elements]


def test_a_report_of_ten_runs_fits_its_size_by_its_budgets(traces: Path, tmp_path: Path) -> None:
    # Size for any runs: 8 bytes per point, 9 per event, 8 per span; Base64 adds a third.
    size = (payload_module.MAX_POINTS * 8 + payload_module.MAX_EVENTS * 9 + payload_module.MAX_SPANS * 8) * 4 / 3
    assert size < 3.5 * MEGABYTE
    assert size * payload_module.MAX_TRACKS / 10 < 14 * MEGABYTE
    page = report(traces, tmp_path / "report.html")
    with_data = page.stat().st_size
    data = len(json.dumps(Reading(page.read_text(encoding="utf-8")).timeline))
    # Size of Plotly and of the page without data.
    assert with_data - data < 5.2 * MEGABYTE


def test_trace_of_one_host_has_no_queues(traces: Path, tmp_path: Path) -> None:
    import tomli
    import tomli_w

    folder = tmp_path / "host"
    folder.mkdir()
    for file in (traces / "cmt-seed1").iterdir():
        if file.name not in ("queues.csv", "scenario.toml"):
            (folder / file.name).write_bytes(file.read_bytes())
    manifest = tomli.loads((folder / "run.toml").read_text(encoding="utf-8"))
    del manifest["seed"]
    manifest |= {"vantage": "host", "epoch_s": 1.0}
    manifest["sender"][0]["addresses"] = ["10.0.0.1 to 10.0.0.2:9", "10.1.0.1 to 10.1.0.2:9"]
    (folder / "run.toml").write_text(tomli_w.dumps(manifest), encoding="utf-8")
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    result["result"] = {"retransmissions": 7, "timeouts": 1, "rwnd_blocked_s": 0.25, "records_dropped": 3}
    (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
    page = read(folder, tmp_path)
    assert {line["channel"] for line in page.timeline["lines"]} == {
        *("throughput", "cwnd", "ssthresh", "outstanding", "srtt")
    }
    assert "A log of one host cannot show which of them arrived" in page.words
    assert "host, flow-1, path-2" in page.texts["dt"]
    assert "10.1.0.1 to 10.1.0.2:9" in page.texts["dd"]
    assert page.rows[1] == ["cmt", "\N{EN DASH}", "8.0", "7", "1", "0.25", "3"]
    assert "1 recording of real sockets, seen from one end" in page.texts["header"][0]


def test_traces_are_shown_in_a_table_as_the_runs_counted_them(of_traces: Reading, traces: Path) -> None:
    result = json.loads((traces / "cmt-pf-seed1" / "result.json").read_text())["result"]
    row = of_traces.row("cmt-pf", "1")
    assert row[3] == f"{result['goodput_kbps']:.0f}"
    assert row[4] == str(result["retransmissions"])
    assert of_traces.labels == ["cmt", "cmt-pf"]
    assert "at 2 s path-2: down; at 5 s path-2: up again." in of_traces.words


def test_the_scenario_in_a_report_of_traces_makes_the_same_run(of_traces: Reading, traces: Path) -> None:
    from anabranch.scenario import Scenario

    again = run(Scenario.parse(of_traces.texts["pre"][0]), seed=1)
    assert again.scheme == "cmt"
    result = json.loads((traces / "cmt-seed1" / "result.json").read_text())["result"]
    assert again.metrics["goodput_kbps"] == result["goodput_kbps"]


def test_one_run_is_a_report_too(traces: Path, tmp_path: Path) -> None:
    page = read(traces / "cmt-seed1", tmp_path)
    assert page.labels == ["cmt"]


def test_traces_of_several_seeds_are_told_apart(tmp_path: Path) -> None:
    text = OUTAGE.replace('"8 s"', '"1 s"')
    write_traces(tmp_path / "t", ["cmt"], text, seed=1)
    write_traces(tmp_path / "t", ["cmt", "sctp"], text, seed=2)
    page = read(tmp_path / "t", tmp_path)
    labels = page.labels
    assert labels == ["cmt, seed 1", "cmt, seed 2", "sctp, seed 2"]
    chosen = read(tmp_path / "t", tmp_path, timeline=["sctp", "cmt"], seed=2)
    assert chosen.labels == ["sctp, seed 2", "cmt, seed 2"]
    mixed = read(tmp_path / "t", tmp_path, timeline=["sctp@seed=2", "cmt@seed=1"])
    assert mixed.labels == ["sctp, seed 2", "cmt, seed 1"]
    assert mixed.timeline["index"]["made"] == [[0, 0, 0], [0, 0, 1], [0, 1, 1]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"timeline": ["cmt-qa"]}, "no runs of `cmt-qa`; choose one of: `cmt`, `cmt-pf`"),
        ({"timeline": ["cmt@path.path-2.loss=0"]}, "`path.path-2.loss` cannot choose among traces"),
        ({"seed": 9}, "no run has seed 9; choose one of: `1`"),
    ],
)
def test_unknown_trace_is_refused_with_available_ones(
    traces: Path, tmp_path: Path, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(ChoiceError, match=re.escape(message)):
        report(traces, tmp_path / "report.html", **arguments)


@pytest.fixture
def broken(results: Results, traces: Path, tmp_path: Path) -> Path:
    results.write(tmp_path / "results")
    folder = tmp_path / "trace"
    folder.mkdir()
    for file in (traces / "cmt-seed1").iterdir():
        (folder / file.name).write_bytes(file.read_bytes())
    return tmp_path


@pytest.mark.parametrize("name", ["runs.parquet", "paths.parquet", "flows.parquet", "manifest.json"])
def test_results_with_a_damaged_file_are_refused_by_its_name(broken: Path, name: str) -> None:
    (broken / "results" / name).write_bytes(b"PAR1 or so")
    with pytest.raises(ResultsError, match=re.escape(name)):
        report(broken / "results")
    (broken / "results" / name).unlink()
    with pytest.raises(ResultsError, match=re.escape(name)):
        report(broken / "results")
    assert not (broken / "results" / "report.html").exists()


@pytest.mark.parametrize("name", ["flow-1-paths.csv", "flow-1-decisions.csv", "packets.csv", "queues.csv"])
def test_traces_that_lack_a_file_are_refused_by_its_name(broken: Path, name: str) -> None:
    (broken / "trace" / name).unlink()
    with pytest.raises(TraceError, match=re.escape(name)):
        report(broken / "trace")


def test_traces_without_their_scenario_are_refused(broken: Path) -> None:
    (broken / "trace" / "scenario.toml").write_text("= no TOML", encoding="utf-8")
    with pytest.raises(ReportError, match=r"scenario\.toml"):
        report(broken / "trace")
    (broken / "trace" / "scenario.toml").unlink()
    with pytest.raises(ReportError, match=r"scenario\.toml.*trace the run again"):
        report(broken / "trace")


def test_a_folder_with_neither_results_nor_traces_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match="has neither results nor traces"):
        report(tmp_path)
    with pytest.raises(ReportError, match="no such folder"):
        report(tmp_path / "nowhere")


def test_unwritable_file_is_named_and_leaves_no_part(traces: Path, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("", encoding="utf-8")
    with pytest.raises(ReportError, match=re.escape(str(tmp_path / "taken" / "report.html"))):
        report(traces, tmp_path / "taken" / "report.html")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_report_replaces_an_older_one_without_other_files(traces: Path, tmp_path: Path) -> None:
    (tmp_path / "report.html").write_text("old", encoding="utf-8")
    report(traces, tmp_path / "report.html")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_results_from_no_folder_need_a_file_to_go_to(results: Results) -> None:
    with pytest.raises(ReportError, match="out= has to name the file"):
        report(results)


class First(ab.Scheduler):
    def pick(self, ask: ab.policy.SendAsk, view: ab.policy.View) -> ab.policy.PathFacts | None:
        return next(iter(view.ready()), None)


def test_schemes_in_python_are_in_tables_and_not_in_the_timeline(tmp_path: Path) -> None:
    scenario = ab.Scenario.parse(LOSSES).with_values({"run.duration": "1 s"})
    both = ab.run(scenario, schemes=["cmt", First()], seeds=2)
    text = both.report(tmp_path / "both.html").read_text(encoding="utf-8")
    assert "First, in Python" in text
    assert "Schemes in Python are in no plan: First." in text
    with pytest.raises(ChoiceError, match="`First` is a scheme in Python, whose runs cannot be repeated"):
        both.report(tmp_path / "both.html", timeline=["First"])
    alone = ab.run(scenario, schemes=[First()], seeds=2)
    with pytest.warns(ReportWarning, match="The report has no timeline, because runs of schemes in Python"):
        alone.report(tmp_path / "alone.html")
