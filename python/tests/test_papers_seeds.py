"""Numbers of seeds that are computed before a run."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from papers_planted import PLANTED, around

import plan_seeds
from anabranch.errors import ExperimentError
from anabranch.estimate import mean_interval
from anabranch.experiments.reading.seeds import SEEDS_FILE
from anabranch.experiments.study import read_study
from anabranch.experiments.verdicts.power import MAX_SEEDS, seeds_needed
from anabranch.papers.catalogue import keys, read_key


@pytest.fixture
def papers(tmp_path: Path) -> Path:
    shutil.copytree(PLANTED, tmp_path / "papers" / "planted-paper")
    return tmp_path / "papers"


def part(std: float, n: int = 20, unit: str = "%", kind: str = "interval") -> dict[str, Any]:
    ours = mean_interval(around(5.0, std, n))
    estimate = {"mean": ours.mean, "half_width": ours.half_width, "n": n, "kind": kind}
    return {"unit": unit, "ours": estimate, "detectable": 1.0}


def pilot(folder: Path, parts: dict[str, list[dict[str, Any]]], quick: bool = False, **told: dict[str, Any]) -> Path:
    """Writes a run whose claims have these figures, and the verdict in `told` or else undecided."""
    more = {claim.replace("_", "-"): said for claim, said in told.items()}
    folder.mkdir(exist_ok=True)
    claims = [
        {"id": claim, "verdict": "cannot tell", "depends_on": [], "parts": found, **more.get(claim, {})}
        for claim, found in parts.items()
    ]
    paper = {"key": "planted-paper", "experiments": [{"id": "loss", "deferred": "", "claims": claims}]}
    (folder / "verdicts.json").write_text(json.dumps({"scope": {"quick": quick}, "studies": [paper]}))
    (folder / "run.json").write_text(json.dumps({"date": "2026-01-01", "commit": "abc"}))
    return folder


def planned(papers: Path) -> int:
    return read_study(papers / "planted-paper").experiment("loss").seeds


def test_an_experiment_that_a_plan_leaves_out_keeps_its_seeds(papers: Path) -> None:
    before = {experiment.id: experiment.seeds for experiment in read_study(papers / "planted-paper").experiments}
    (papers / "planted-paper" / SEEDS_FILE).write_text(PLAN + "[seeds]\nloss = 77\n")
    after = {experiment.id: experiment.seeds for experiment in read_study(papers / "planted-paper").experiments}
    assert after == {**before, "loss": 77}
    (papers / "planted-paper" / SEEDS_FILE).unlink()
    experiments = papers / "planted-paper" / "experiments.toml"
    text = experiments.read_text()
    assert "\nseeds = 4\n" in text
    experiments.write_text(text.replace("\nseeds = 4\n", "\nseeds = 1\n", 1))
    (papers / "planted-paper" / SEEDS_FILE).write_text(PLAN + "[seeds]\n")
    assert planned(papers) == 1


def test_the_scatter_is_that_behind_the_interval() -> None:
    assert plan_seeds.std_of(part(7.0)["ours"]) == pytest.approx(7.0)
    assert plan_seeds.std_of(part(7.0, n=2)["ours"]) == pytest.approx(7.0)


def test_an_experiment_gets_what_its_widest_comparison_needs(papers: Path, tmp_path: Path) -> None:
    made = pilot(tmp_path / "pilot", {"loss-higher": [part(4.0), part(8.0)], "loss-lower": [part(6.0)]})
    assert plan_seeds.main([str(made), "--detect", "2", "--papers", str(papers)]) == 0
    assert planned(papers) == seeds_needed(8.0, 2.0) == 128
    text = (papers / "planted-paper" / SEEDS_FILE).read_text()
    assert 'detect_points = 2\npower = 0.8\nlevel = 0.05\npilot_date = "2026-01-01"\npilot_commit = "abc"\n' in text


def test_only_claims_that_are_too_wide_ask_for_seeds(papers: Path, tmp_path: Path) -> None:
    before = planned(papers)
    narrow = {**part(8.0), "detectable": None}
    parts = {"loss-higher": [part(8.0)], "loss-lower": [part(8.0)], "loss-decisive": [narrow]}
    decided = {"loss_higher": {"verdict": "differs"}, "loss_lower": {"depends_on": ["slow-second"]}}
    plan_seeds.write_plans(pilot(tmp_path / "pilot", parts, **decided), papers, 2.0)
    assert planned(papers) == before


def test_difference_without_percent_requests_no_seeds(papers: Path, tmp_path: Path) -> None:
    before = planned(papers)
    parts = {
        "loss-falls": [part(500.0)],
        "loss-higher": [part(500.0, unit="kbit/s"), part(500.0, kind="deterministic")],
    }
    plan_seeds.write_plans(pilot(tmp_path / "pilot", parts), papers, 2.0)
    assert planned(papers) == before


def test_no_experiment_gets_more_than_a_thousand_seeds(papers: Path, tmp_path: Path) -> None:
    plan_seeds.write_plans(pilot(tmp_path / "pilot", {"loss-higher": [part(500.0)]}), papers, 2.0)
    assert planned(papers) == MAX_SEEDS == 1000


def test_a_plan_is_not_changed_after_results_were_seen(
    papers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan_seeds.write_plans(pilot(tmp_path / "pilot", {"loss-higher": [part(8.0)]}), papers, 2.0)
    before = planned(papers)
    wider = pilot(tmp_path / "pilot", {"loss-higher": [part(20.0)]})
    assert plan_seeds.main([str(wider), "--detect", "2", "--papers", str(papers)]) == 2
    assert "is a plan already" in capsys.readouterr().err
    assert planned(papers) == before


def test_a_quick_run_is_no_pilot_and_neither_is_nothing(
    papers: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = pilot(tmp_path / "pilot", {}, quick=True)
    assert plan_seeds.main([str(quick), "--detect", "2", "--papers", str(papers)]) == 2
    assert "is a quick run" in capsys.readouterr().err
    assert plan_seeds.main([str(tmp_path / "none"), "--detect", "2", "--papers", str(papers)]) == 2
    assert "none/verdicts.json" in capsys.readouterr().err
    assert not (papers / "planted-paper" / SEEDS_FILE).exists()


@pytest.mark.parametrize("points", ["0", "-1", "nan", "inf", "101", "many"])
def test_a_difference_that_is_none_is_refused(points: str, tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        plan_seeds.main([str(tmp_path), f"--detect={points}"])


PLAN = 'detect_points = 2\npower = 0.8\nlevel = 0.05\npilot_date = ""\npilot_commit = ""\n'


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (PLAN + "[seeds]\nloss = 1\n", "is 1; it has to be from 2 to 1000"),
        (PLAN + "[seeds]\nloss = 1001\n", "is 1001; it has to be from 2 to 1000"),
        (PLAN + "[seeds]\nlos = 20\n", "`los` has no effect here; did you mean `loss`"),
        (PLAN, "`seeds` is missing"),
        ("[seeds]\nloss = 20\n", "`detect_points` is missing"),
        (PLAN + "more = 1\n[seeds]\n", "`more` has no effect here"),
    ],
)
def test_a_plan_that_is_wrong_is_refused(text: str, problem: str, papers: Path) -> None:
    (papers / "planted-paper" / SEEDS_FILE).write_text(text)
    with pytest.raises(ExperimentError) as raised:
        read_study(papers / "planted-paper")
    assert problem in str(raised.value)
    assert SEEDS_FILE in str(raised.value)


@pytest.mark.parametrize("key", keys())
def test_no_paper_has_more_seeds_than_the_most(key: str) -> None:
    assert all(experiment.seeds <= MAX_SEEDS for experiment in read_key(key).experiments)


def test_simulated_pairs_are_detected_as_often_as_planned() -> None:
    """Expects significance in about 80 of 100 samples with the planned number of pairs."""
    seeds = seeds_needed(8.0, 4.0)
    assert seeds is not None
    drawn = np.random.default_rng(1).normal(4.0, 8.0, (2000, seeds))
    found = sum(mean_interval(sample).low > 0 for sample in drawn) / len(drawn)
    assert math.isclose(found, 0.8, abs_tol=0.03)
