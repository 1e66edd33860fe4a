"""Tutorial on an experiment with a claim: its folder runs, and verdicts follow the claims."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from book import ROOT, run_chapter

from anabranch import experiments
from anabranch.errors import ExperimentError

EXAMPLE = ROOT / "examples" / "own-experiment"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


def verdicts(folder: Path, out: Path, cache: Path) -> dict[str, str]:
    outcome = experiments.run_experiments(folder, out, cache=cache, progress=False)
    (experiment,) = outcome["studies"][0]["experiments"]
    return {claim["id"]: claim["verdict"] for claim in experiment["claims"]}


def test_commands_and_code_of_the_tutorial_run(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "examples" / "own-experiment")
    monkeypatch.setenv("ANABRANCH_CACHE", str(cache))
    run_chapter("own-experiment.md", tmp_path, monkeypatch)
    page = (tmp_path / "out/own-experiment/own-experiment/loss/claims.md").read_text()
    assert "| `gain` | H | CMT has twice the goodput of SCTP without loss | +100 % |" in page
    assert "![loss, figure](figure.svg)" in page
    assert "reproduced" in (tmp_path / "out/own-experiment/index.html").read_text()


def test_contrary_claim_differs_and_simulates_nothing_again(tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "own-experiment"
    shutil.copytree(EXAMPLE, folder)
    claims = folder / "claims.toml"
    claims.write_text(
        claims.read_text().replace('relation = "higher"', 'relation = "lower"').replace("percent = 100\n", "")
    )
    verdicts(EXAMPLE, tmp_path / "first", cache)
    assert verdicts(folder, tmp_path / "out", cache) == {"gain": "differs", "gain-everywhere": "differs"}
    assert '"runs_computed": 0' in (tmp_path / "out" / "run.json").read_text()


def test_folder_without_claims_is_refused(tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE, tmp_path / "own-experiment")
    (tmp_path / "own-experiment" / "claims.toml").unlink()
    with pytest.raises(ExperimentError, match=r"claims\.toml"):
        experiments.run_experiments(tmp_path / "own-experiment", tmp_path / "out", cache=False, progress=False)
