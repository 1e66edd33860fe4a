"""Radio links in place of those of a paper, and their results beside those of a full reproduction."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from papers_planted import PLANTED

from anabranch.command.papers import main
from anabranch.errors import ExperimentError
from anabranch.experiments.model import RADIO
from anabranch.experiments.plan import Scope, Setting, settings_of
from anabranch.experiments.scenarios import resolved, tables_of
from anabranch.experiments.stored import load
from anabranch.experiments.study import read_study
from anabranch.papers.catalogue import read_key

LINKS = """
about = "Radio links."
seeds = 2

[[links]]
scenarios = ["two-path.toml"]

[links.set]
"path.*.loss" = 0
"path.*.jitter" = { model = "retransmission", failure = 0.5, round = "10 ms", attempts = 3 }

[[links]]
scenarios = ["two-path.toml"]

[links.set]
"path.path-1.jitter.failure" = 0.25
"""

Papers = Callable[[str], Path]


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    """Returns a folder of papers whose planted paper has this file of radio links."""

    def write(links: str) -> Path:
        shutil.copytree(PLANTED, tmp_path / "papers" / "planted-paper")
        (tmp_path / "papers" / "planted-paper" / "radio.toml").write_text(links, encoding="utf-8")
        return tmp_path / "papers"

    return write


def on_radio(papers: Path, experiment: str) -> Setting:
    study = read_key("planted-paper", papers)
    return next(each for each in settings_of(study.experiment(experiment), Scope()) if each.id == RADIO)


def failures(setting: Setting, cell: tuple[int, ...], seed: int = 1) -> list[tuple[float, Any]]:
    """Returns the failure probability and the loss of each path."""
    scenario = tables_of(resolved(setting.experiment.scenario, setting.settings_at(cell, seed)))
    return [(path["jitter"]["failure"], path["loss"]) for path in scenario["path"]]


def test_losses_of_axis_become_failed_attempts(papers: Papers) -> None:
    setting = on_radio(papers(LINKS), "loss")
    assert [failures(setting, (index,)) for index in range(3)] == [
        [(0.25, []), (0.0, [])],
        [(0.25, []), (0.05, [])],
        [(0.25, []), (0.2, [])],
    ]
    assert setting.seeds == (1, 2)


def test_losses_that_an_experiment_sets_become_failed_attempts(papers: Papers) -> None:
    assert failures(on_radio(papers(LINKS), "windows"), ()) == [(0.25, []), (0.1, [])]


def test_drawn_losses_become_failed_attempts_with_the_same_values(papers: Papers) -> None:
    folder = papers(LINKS)
    default = settings_of(read_key("planted-paper", folder).experiment("drawn"), Scope())[0]
    values = default.drawn(3)
    assert set(values) == {"path.path-1.loss", "path.path-2.loss"}
    renamed = {key.replace(".loss", ".jitter.failure"): value for key, value in values.items()}
    assert on_radio(folder, "drawn").drawn(3) == renamed


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("seeds = 2", "seeds = 0", "`seeds` is 0"),
        ('scenarios = ["two-path.toml"]', 'scenarios = ["two.toml"]', "`scenarios` has `two.toml`; did you mean"),
        ("failure = 0.5", "failure = 5", "ablation radio: "),
        ("about", "abut", "`about` is missing"),
    ],
)
def test_faults_name_file_and_key(papers: Papers, old: str, new: str, said: str) -> None:
    assert old in LINKS
    with pytest.raises(ExperimentError, match=r"radio\.toml") as error:
        read_key("planted-paper", papers(LINKS.replace(old, new)))
    assert said in str(error.value)


def test_every_experiment_with_claims_has_the_radio_links_of_its_paper() -> None:
    for key in ("cmt-qa", "db-cmt"):
        study = read_key(key)
        for experiment in study.experiments:
            has_radio = any(change.id == RADIO for change in experiment.ablations)
            assert has_radio == bool(study.claims_of(experiment.id)), experiment.id


def run(papers: Path, *arguments: str) -> int:
    return main(["--data", str(papers), *arguments])


def test_results_of_radio_links_are_added_as_a_full_run_has_them(papers: Papers, tmp_path: Path) -> None:
    folder, cache = papers(LINKS), str(tmp_path / "cache")
    whole, alone, added = tmp_path / "whole.xz", tmp_path / "alone.xz", tmp_path / "added.xz"
    for change, out_folder in ((None, "whole"), ("trigger-6", "trigger"), ("radio", "radio")):
        options = ["--change", change] if change else []
        target = str(tmp_path / out_folder)
        assert run(folder, "reproduce", "planted-paper/loss", "--cache", cache, "--out", target, *options) == 0
    assert run(folder, "store", str(tmp_path / "whole"), str(whole)) == 0
    (folder / "planted-paper" / "radio.toml").unlink()
    assert read_study(folder / "planted-paper").experiment("loss").ablations[-1].id == "trigger-6"
    without = str(tmp_path / "without")
    assert run(folder, "reproduce", "planted-paper/loss", "--cache", cache, "--out", without) == 0
    assert run(folder, "store", without, str(alone)) == 0
    shutil.copy(alone, added)
    for twice in ("radio", "radio", "trigger"):
        assert run(folder, "store", str(tmp_path / twice), str(added)) == 0
    assert load(added).outcome["studies"] == load(whole).outcome["studies"]
    assert load(alone).outcome["studies"] != load(whole).outcome["studies"]
    assert set(load(added).about["added"]) == {"radio", "trigger-6"}


def test_change_that_cannot_be_added_is_refused(
    papers: Papers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, results = papers(LINKS), tmp_path / "results.xz"

    def reproduced(*change: str) -> str:
        target = str(tmp_path / "-".join(("out", *change)))
        options = ["--cache", str(tmp_path / "cache"), "--seeds", "2", "--out", target]
        assert run(folder, "reproduce", "planted-paper/loss", *options, *change) == 0
        return target

    assert run(folder, "store", reproduced("--change", "radio"), str(results)) == 2
    assert "cannot be read" in capsys.readouterr().err
    assert run(folder, "store", reproduced(), str(results)) == 0
    assert run(folder, "store", reproduced("--change", "delay-100ms"), str(results)) == 2
    assert "verdicts depend on the variant" in capsys.readouterr().err


def test_change_of_no_selected_experiment_is_refused(
    papers: Papers, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--out", str(tmp_path / "out"), "--change", "radoi"]
    assert run(papers(LINKS), "reproduce", "planted-paper/loss", *options) == 2
    assert "--change: no selected experiment has `radoi`: did you mean `radio`?" in capsys.readouterr().err
