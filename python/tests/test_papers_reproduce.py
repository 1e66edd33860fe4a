"""Complete reproduction of the planted paper."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

import pandas as pd
import pytest
from papers_planted import PLANTED

import anabranch
import check_verdicts
from anabranch.errors import ExperimentError
from anabranch.experiments import outcome as out
from anabranch.experiments.cost import Cost
from anabranch.experiments.model import Measure
from anabranch.experiments.pages.summary import counts_text
from anabranch.experiments.pipeline import reproduce
from anabranch.experiments.plan import Scope, narrowed, settings_of, wanted
from anabranch.experiments.study import read_study
from anabranch.experiments.sweeps import SweepOptions
from anabranch.experiments.workers import Workers
from anabranch.papers.catalogue import select

DATA = PLANTED.parent

Reproduce: TypeAlias = "Callable[..., tuple[out.Outcome, Cost]]"


ALL = Scope()


@pytest.fixture(scope="module")
def processes() -> Iterator[Workers]:
    """Yields worker processes that all tests share."""
    with Workers(2) as workers:
        yield workers


@pytest.fixture(scope="module")
def reproduced(processes: Workers) -> Reproduce:
    def run(
        name: str, folder: Path, cache: Path | None, scope: Scope = ALL, data: Path = DATA
    ) -> tuple[out.Outcome, Cost]:
        return reproduce(select(name, data), folder, scope, SweepOptions(cache, progress=False), processes)

    return run


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def whole(
    tmp_path_factory: pytest.TempPathFactory, cache: Path, reproduced: Reproduce
) -> tuple[Path, out.Outcome, Cost]:
    """Returns a complete reproduction with an empty cache."""
    folder = tmp_path_factory.mktemp("whole")
    return folder, *reproduced("all", folder, cache)


def claims(outcome: out.Outcome) -> dict[str, out.ClaimOutcome]:
    experiments = [each for paper in outcome["studies"] for each in paper["experiments"]]
    return {claim["id"]: claim for experiment in experiments for claim in experiment["claims"]}


def experiment(outcome: out.Outcome, identity: str) -> out.ExperimentOutcome:
    return next(each for each in outcome["studies"][0]["experiments"] if each["id"] == identity)


def test_planted_claims_come_out_as_planted(whole: tuple[Path, out.Outcome, Cost]) -> None:
    found = {name: claim["verdict"] for name, claim in claims(whole[1]).items()}
    assert found["loss-lower"] == "differs"
    assert found["loss-falls"] == "reproduced"
    assert found["loss-gain"] == "reproduced"
    assert found["loss-slope"] == "contradictory"
    assert found["windows-first"] == "reproduced"
    assert found["file-grows"] == "reproduced"
    assert found["video-psnr"] == "open: needs video"


def test_claim_reversed_by_a_plausible_value_is_undecided_and_names_it(
    whole: tuple[Path, out.Outcome, Cost],
) -> None:
    claim = claims(whole[1])["loss-decisive"]
    assert (claim["verdict"], claim["default"]) == ("cannot tell", "reproduced")
    assert claim["depends_on"] == ["slow-second"]
    decided = {each["change"]: each["verdict"] for each in claim["sensitivity"] if each["decides"]}
    assert decided == {"slow-second": "differs"}
    page = (whole[0] / "planted-paper" / "loss" / "claims.md").read_text()
    assert "| `loss-decisive` | above | `slow-second` |" in page


def test_variant_decides_named_claims_only_other_changes_none(
    whole: tuple[Path, out.Outcome, Cost],
) -> None:
    falls = claims(whole[1])["loss-falls"]
    assert {each["change"]: each["decides"] for each in falls["sensitivity"]} == {
        "slow-by-text": False,
        "trigger-6": False,
    }


def test_a_reading_is_judged_like_a_variant_and_changes_no_verdict(whole: tuple[Path, out.Outcome, Cost]) -> None:
    """Uses `slow-by-text`, which changes the same value as `slow-second`, on which a claim depends."""
    claim = claims(whole[1])["loss-decisive"]
    under = {each["change"]: (each["verdict"], each["decides"]) for each in claim["sensitivity"]}
    assert under["slow-by-text"] == ("differs", False)
    assert under["slow-second"] == ("differs", True)
    assert claim["depends_on"] == ["slow-second"]
    page = (whole[0] / "summary.md").read_text()
    assert "* `second-link`: Both links have the same rate: a made-up trace shows it." in page
    assert "| `slow-by-text` | " in page


def test_an_ablation_changes_the_schemes_that_it_names_and_no_others(whole: tuple[Path, out.Outcome, Cost]) -> None:
    changes = {each["id"]: each for each in experiment(whole[1], "loss")["changes"]}
    ablated = {each["scheme"]: each["difference"] for each in changes["trigger-6"]["schemes"]}
    assert ablated["CMT"]["mean"] != 0
    assert ablated["SCTP"] == {"mean": 0.0, "half_width": None, "n": 4, "kind": "deterministic"}


def test_a_second_reproduction_gives_the_same_and_computes_nothing(
    whole: tuple[Path, out.Outcome, Cost], cache: Path, tmp_path: Path, reproduced: Reproduce
) -> None:
    _, spent = reproduced("all", tmp_path, cache)
    assert (spent.computed, spent.cached) == (0, whole[2].computed + whole[2].cached)
    for name in ("verdicts.json", "summary.md", "planted-paper/loss/data.csv", "planted-paper/windows/data.parquet"):
        assert (tmp_path / name).read_bytes() == (whole[0] / name).read_bytes(), name


def test_a_reproduction_without_a_cache_gives_the_same(
    whole: tuple[Path, out.Outcome, Cost], tmp_path: Path, reproduced: Reproduce
) -> None:
    for name in ("planted-paper/drawn", "planted-paper/windows"):
        outcome, spent = reproduced(name, tmp_path, None)
        assert spent.cached == 0
        assert outcome["studies"][0]["experiments"] == [experiment(whole[1], name.partition("/")[2])]


def test_verdicts_have_neither_times_nor_versions(whole: tuple[Path, out.Outcome, Cost]) -> None:
    from anabranch.version import engine

    text = (whole[0] / "verdicts.json").read_text()
    about = json.loads((whole[0] / "run.json").read_text())
    assert about["fingerprint"] == engine().fingerprint
    assert about["version"] == engine().version
    assert len(about["date"]) == 10
    for value in (engine().fingerprint, engine().commit, about["date"]):
        assert value not in text
    assert json.loads(text) == whole[1]


def test_every_figure_has_a_picture_and_its_data(whole: tuple[Path, out.Outcome, Cost]) -> None:
    for each in whole[1]["studies"][0]["experiments"]:
        folder = whole[0] / "planted-paper" / each["id"]
        assert (folder / "claims.md").is_file()
        for figure in each["figures"]:
            assert all((folder / file).stat().st_size > 100 for file in figure["files"])
            drawn = [file for file in figure["files"] if file.endswith((".svg", ".png"))]
            assert len(drawn) == (0 if figure["kind"] == "table" else 2)


def test_data_of_a_figure_is_the_same_as_csv_and_as_parquet(whole: tuple[Path, out.Outcome, Cost]) -> None:
    folder = whole[0] / "planted-paper" / "loss"
    csv, parquet = pd.read_csv(folder / "data.csv"), pd.read_parquet(folder / "data.parquet")
    assert list(csv.columns) == list(parquet.columns)
    assert csv["mean"].tolist() == parquet["mean"].tolist()
    assert csv[["scheme", "x", "n"]].values.tolist()[:3] == [["CMT", 0.0, 4], ["CMT", 5.0, 4], ["CMT", 20.0, 4]]
    assert (csv["half_width_normal"].dropna() < csv["half_width"].dropna()).all()


def test_figures_over_time_show_the_traces_of_one_run(whole: tuple[Path, out.Outcome, Cost]) -> None:
    folder = whole[0] / "planted-paper" / "windows"
    windows = pd.read_csv(folder / "data.csv")
    assert windows["time_s"].max() == 5.0
    assert set(windows["scheme"]) == {"CMT", "SCTP"}
    assert set(windows["seed"]) == {1}
    tsn = pd.read_csv(folder / "tsn-data.csv")
    assert tsn["time_s"].between(0.5, 1.0).all()
    over_time = pd.read_csv(folder / "over-time-data.csv")
    assert over_time["time_s"].tolist()[:3] == [0.0, 0.5, 1.0]
    assert set(over_time["n"]) == {2}


def test_tables_have_both_intervals_and_lines_their_figures(whole: tuple[Path, out.Outcome, Cost]) -> None:
    figures = {each["name"]: each for each in experiment(whole[1], "loss")["figures"]}
    assert figures["values"]["table"][0] == ["", "scheme", "0", "5", "20"]
    assert figures["values"]["table"][1][4].count("±") == 2
    header, row = figures["line"]["table"]
    assert header[2:5] == ["line", "R²", "multiple R"]
    assert row[2].startswith("y = -")


def test_pages_have_every_claim_with_paper_ours_and_verdict(whole: tuple[Path, out.Outcome, Cost]) -> None:
    summary = (whole[0] / "summary.md").read_text()
    index = (whole[0] / "index.html").read_text()
    for name, claim in claims(whole[1]).items():
        assert f"| `{name}` | {claim['rank']} | {claim['says']} | {claim['claimed']} | " in summary
        assert f"**{claim['verdict']}**" in summary
        assert f"<code>{name}</code>" in index
    assert '<img src="planted-paper/loss/figure.svg"' in index
    page = (whole[0] / "planted-paper" / "loss" / "claims.md").read_text()
    assert "Two paths carry more than one." in page
    assert "Not known: one-way delay; which of two buffers." in page


def test_samples_have_a_row_for_each_setting_scheme_cell_and_seed(whole: tuple[Path, out.Outcome, Cost]) -> None:
    samples = pd.read_parquet(whole[0] / "planted-paper" / "loss" / "samples.parquet")
    assert not samples.duplicated(["setting", "scheme", "plr2", "seed"]).any()
    loss = read_study(PLANTED).experiment("loss")
    assert list(samples["setting"].unique()) == ["default", *[change.id for change in loss.changes]]
    default = samples[samples["setting"] == "default"]
    assert len(default) == experiment(whole[1], "loss")["runs"]
    data = pd.read_csv(whole[0] / "planted-paper" / "loss" / "data.csv")
    for (scheme, value), cell in default.groupby(["scheme", "plr2"]):
        (mean,) = data[(data["scheme"] == scheme) & (data["x"] == 100 * value)]["mean"]
        assert cell["goodput_kbps"].mean() == pytest.approx(mean)


def test_verdicts_of_a_folder_agree_with_means_and_samples(
    whole: tuple[Path, out.Outcome, Cost], capsys: pytest.CaptureFixture[str]
) -> None:
    assert check_verdicts.main([str(whole[0]), "--papers", str(DATA)]) == 0
    assert capsys.readouterr().out == "13 claims, 13 agree with the stored figures\n"


def test_figure_that_samples_contradict_is_named(
    whole: tuple[Path, out.Outcome, Cost], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "forged"
    shutil.copytree(whole[0], folder)
    outcome = json.loads((folder / "verdicts.json").read_text())
    claims(outcome)["loss-lower"]["parts"][0]["ours"]["mean"] *= 1.001
    (folder / "verdicts.json").write_text(json.dumps(outcome))
    assert check_verdicts.main([str(folder), "--papers", str(DATA)]) == 1
    assert re.search(r"loss-lower: its figure is .* %, but the samples make it .* %", capsys.readouterr().out)
    (folder / "planted-paper" / "loss" / "samples.parquet").unlink()
    assert check_verdicts.main([str(folder), "--papers", str(DATA)]) == 2
    assert "name what `anabranch papers store`" in capsys.readouterr().err


def test_the_summary_counts_verdicts_by_rank(whole: tuple[Path, out.Outcome, Cost]) -> None:
    lines = counts_text(whole[1]).splitlines()
    assert lines[0].split("  ")[0] == "rank"
    assert lines[-1].split()[0] == "all"
    assert lines[-1].split()[-1] == "13"
    counted = sum(claim["verdict"] == "reproduced" for claim in claims(whole[1]).values())
    assert lines[-1].split()[1] == str(counted)


def test_quick_reproduction_omits_variants_and_reports_other_omissions(
    tmp_path: Path, cache: Path, reproduced: Reproduce
) -> None:
    outcome, _ = reproduced("planted-paper/loss", tmp_path, cache, Scope(quick=True))
    loss = experiment(outcome, "loss")
    assert (loss["runs"], loss["seeds"], loss["changes"]) == (12, 2, [])
    found = claims(outcome)
    assert found["loss-gain"]["detail"] == "plr2 = 0.05 was omitted"
    assert all(claim["verdict"] in ("cannot tell", "contradictory") or claim["parts"] for claim in found.values())
    assert "This is a quick run" in (tmp_path / "summary.md").read_text()


def test_seeds_variants_and_ablations_can_be_set() -> None:
    loss = read_study(PLANTED).experiment("loss")
    assert [each.id for each in settings_of(loss, Scope())] == [
        "default",
        "delay-100ms",
        "slow-second",
        "slow-by-text",
        "trigger-6",
    ]
    assert [each.id for each in settings_of(loss, Scope(variants=False))] == ["default", "trigger-6"]
    assert [each.id for each in settings_of(loss, Scope(ablations=False))][1:] == [
        "delay-100ms",
        "slow-second",
        "slow-by-text",
    ]
    assert [each.id for each in settings_of(loss, Scope(claims=True))] == ["default", "delay-100ms", "slow-second"]
    assert settings_of(loss, Scope(seeds=7))[0].seeds == tuple(range(1, 8))
    assert settings_of(loss, Scope(quick=True))[0].axes[0].values == (0, 0.2)


def test_claims_read_the_named_values_of_a_setting() -> None:
    paper = read_study(PLANTED)
    loss = settings_of(paper.experiment("loss"), Scope())[0]

    def kept(*names: str) -> tuple[list[str], list[tuple[object, ...]]]:
        setting = narrowed(loss, [claim for claim in paper.claims if claim.id in names])
        assert setting is not None
        assert setting.experiment.figures == ()
        return list(setting.schemes), [axis.values for axis in setting.axes]

    assert kept("loss-value") == (["CMT"], [(0.2,)])
    assert kept("loss-lower", "loss-value") == (["CMT", "SCTP"], [(0, 0.2)])
    # A mean over an axis needs all of it.
    assert kept("loss-higher") == (["CMT", "SCTP"], [(0, 0.05, 0.2)])
    assert narrowed(loss, paper.claims_of("windows")) is None


def test_verdicts_alone_need_fewer_runs_and_are_the_same(
    tmp_path: Path, cache: Path, whole: tuple[Path, out.Outcome, Cost], reproduced: Reproduce
) -> None:
    everything, cost = whole[1:]
    outcome, alone = reproduced("all", tmp_path, cache, Scope(claims=True))
    assert alone.cached < cost.computed + cost.cached
    assert alone.computed == 0

    def judged(claim: out.ClaimOutcome) -> list[object]:
        by_variants = [each for each in claim["sensitivity"] if each["kind"] == "variant"]
        return [claim["verdict"], claim["parts"], claim["detail"], claim["depends_on"], by_variants]

    expected = {name: judged(claim) for name, claim in claims(everything).items()}
    assert {name: judged(claim) for name, claim in claims(outcome).items()} == expected
    assert all(not each["figures"] for paper in outcome["studies"] for each in paper["experiments"])
    assert "This run has only the data that verdicts need" in (tmp_path / "summary.md").read_text()
    assert "This run has only" not in (whole[0] / "summary.md").read_text()


def test_only_runs_whose_traces_are_needed_are_traced() -> None:
    paper = read_study(PLANTED)
    setting = settings_of(paper.experiment("windows"), Scope())[0]
    only = [claim for claim in paper.claims if claim.id == "windows-paths"]
    needed = wanted(setting, only)
    measured = {cell for extract, cells in needed.traced.items() if isinstance(extract, Measure) for cell in cells}
    assert measured == {("CMT", (), 1), ("CMT", (), 2)}
    assert ("SCTP", (), 1) in needed.traced_runs()
    loss = settings_of(paper.experiment("loss"), Scope())[0]
    assert wanted(loss, paper.claims_of("loss")).traced_runs() == []


def test_an_experiment_that_another_ones_claim_needs_is_run_as_well(tmp_path: Path, reproduced: Reproduce) -> None:
    data = tmp_path / "data"
    shutil.copytree(PLANTED, data / "planted-paper")
    path = data / "planted-paper" / "claims.toml"
    extra = """
[[claim]]
id = "drawn-gain"
experiment = "drawn"
rank = "W"
says = "The gain is smaller where losses are drawn"
kind = "gain-trend"
a = { scheme = "CMT" }
b = { scheme = "SCTP" }
points = [{ experiment = "loss", at = { plr2 = 0 } }, { label = "drawn" }]
direction = "falling"
"""
    path.write_text(path.read_text() + extra)
    outcome, _ = reproduced("planted-paper/drawn", tmp_path / "out", None, Scope(quick=True, seeds=3), data)
    assert [each["id"] for each in outcome["studies"][0]["experiments"]] == ["drawn"]
    assert claims(outcome)["drawn-gain"]["parts"][0]["ours"]["n"] == 3


def test_measures_of_traces_are_cached_by_measure_and_version(
    monkeypatch: pytest.MonkeyPatch,
    whole: tuple[Path, out.Outcome, Cost],
    cache: Path,
    tmp_path: Path,
    reproduced: Reproduce,
) -> None:
    import dataclasses

    from anabranch.experiments.measures import MEASURES

    newer = dataclasses.replace(MEASURES["cwnd_initial_bytes"], version=2)
    monkeypatch.setitem(MEASURES, "cwnd_initial_bytes", newer)
    _, spent = reproduced("planted-paper/windows", tmp_path, cache)
    assert spent.computed == 4


def test_a_damaged_entry_of_the_cache_is_made_again(tmp_path: Path, reproduced: Reproduce) -> None:
    first, _ = reproduced("planted-paper/windows", tmp_path / "first", tmp_path / "cache")
    for entry in (tmp_path / "cache" / "traces").rglob("*"):
        if entry.is_file():
            entry.write_bytes(entry.read_bytes()[:-3])
    again, spent = reproduced("planted-paper/windows", tmp_path / "again", tmp_path / "cache")
    assert spent.computed == 4
    assert again == first


def test_no_trace_stays_behind(whole: tuple[Path, out.Outcome, Cost], cache: Path) -> None:
    assert not list(cache.rglob("*.csv"))
    assert not list(whole[0].rglob("packets.csv"))


def test_unwritable_folder_is_an_error_before_the_first_run(tmp_path: Path, reproduced: Reproduce) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    with pytest.raises(ExperimentError, match=r"cannot be written to: .*name another one with --out"):
        reproduced("all", blocked / "out", None)


def test_failed_run_is_counted_and_reported(tmp_path: Path, reproduced: Reproduce) -> None:
    data = tmp_path / "data"
    shutil.copytree(PLANTED, data / "planted-paper")
    path = data / "planted-paper" / "experiments.toml"
    path.write_text(path.read_text().replace('"run.duration" = "60 s"', '"run.duration" = "300 ms"'))
    outcome, _ = reproduced("planted-paper/file", tmp_path / "out", None, ALL, data)
    assert experiment(outcome, "file")["failed"] > 0
    assert "of the runs failed" in (tmp_path / "out" / "planted-paper" / "file" / "claims.md").read_text()
    assert claims(outcome)["file-grows"]["verdict"] == "cannot tell"


def test_cost_is_reported_per_second() -> None:
    assert str(Cost(100, 20, 5000, seconds=10)) == (
        "120 runs, 20 of them from the cache, in 10 s; computed were 10 runs and 500 simulated packets with DATA "
        "per second"
    )
    assert str(Cost(0, 20, seconds=2)) == "20 runs, 20 of them from the cache, in 2 s"


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "anabranch", "papers", "--data", str(DATA), *map(str, arguments)]


def test_ctrl_c_keeps_finished_runs_and_ends_with_130(tmp_path: Path, reproduced: Reproduce) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(anabranch.__file__).parents[1])}
    arguments = command("reproduce", "planted-paper/loss", "--seeds", 3000, "--out", tmp_path / "out")
    process = subprocess.Popen(
        [*arguments, "--cache", str(tmp_path / "cache")], env=environment, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 60
    while len(list((tmp_path / "cache").rglob("*"))) < 20 and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupt" in said or "stopped" in said
    kept = [entry for entry in (tmp_path / "cache").rglob("*") if entry.is_file()]
    assert len(kept) >= 10
    _, spent = reproduced("planted-paper/loss", tmp_path / "out", tmp_path / "cache", Scope(quick=True))
    assert spent.cached > 0
