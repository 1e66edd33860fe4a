"""Changes that replace the measure of an experiment or the settings of an axis."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from papers_planted import PLANTED

from anabranch.errors import ExperimentError
from anabranch.experiments.cost import Cost
from anabranch.experiments.jobs import Job, Measurements, jobs_of, run_job
from anabranch.experiments.model import Measure
from anabranch.experiments.plan import Scope
from anabranch.experiments.sweeps import SweepOptions
from anabranch.experiments.tracing import Tracer
from anabranch.experiments.workers import Workers
from anabranch.papers.catalogue import select

Added = Callable[[str], Path]

BURSTY = """[[experiment.reading]]
id = "bursty"
about = "Losses in bursts."
decided = "second-link"
sets = { plr2 = [
    { "path.path-2.loss" = 0 },
    { "path.path-2.loss" = { model = "gilbert-elliott", p = 0.0175, r = 0.3333 } },
    { "path.path-2.loss" = { model = "gilbert-elliott", p = 0.0833, r = 0.3333 } },
] }
"""

COUNTER = """[[experiment.reading]]
id = "counter"
about = "Another counter."
decided = "second-link"
measure = "timeouts_by_ns2"
"""


@pytest.fixture
def added(tmp_path: Path) -> Added:
    """Adds a change to the experiment of the planted paper that varies the loss, and returns the folder of papers."""

    def add(change: str) -> Path:
        shutil.copytree(PLANTED, tmp_path / "planted-paper")
        file = tmp_path / "planted-paper" / "experiments.toml"
        mark = '[[experiment.ablation]]\nid = "trigger-6"'
        file.write_text(file.read_text(encoding="utf-8").replace(mark, f"{change}\n{mark}"), encoding="utf-8")
        return tmp_path

    return add


def job(papers: Path, setting: str) -> Job:
    jobs = jobs_of(select("planted-paper/loss", papers), Scope(seeds=2))
    return next(each for each in jobs if each.setting.id == setting)


def measured(papers: Path, setting: str) -> Measurements:
    options = SweepOptions(workers=1, cache=False, progress=False)
    with Workers(1) as workers:
        return run_job(job(papers, setting), options, Tracer(None, workers, Cost()), Cost(), lambda _: None)


def test_change_replaces_settings_of_axis_by_value(added: Added) -> None:
    setting = job(added(BURSTY), "bursty").setting
    assert setting.settings_at((0,), 1)["path.path-2.loss"] == 0
    assert setting.settings_at((2,), 1)["path.path-2.loss"] == {"model": "gilbert-elliott", "p": 0.0833, "r": 0.3333}
    assert "gilbert-elliott" in str(setting.change)


def test_claims_read_the_measure_that_a_change_supplies(added: Added) -> None:
    papers = added(COUNTER)
    goodput = Measure("goodput_kbps")
    under = measured(papers, "counter").grids
    assert np.array_equal(under[goodput].values, under[Measure("timeouts_by_ns2")].values)
    assert under[goodput].values.min() >= 2
    assert measured(papers, "default").grids[goodput].values.min() > 100


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("plr2 = [", "plr3 = [", "`sets` names the axis `plr3`; did you mean `plr2`?"),
        ('    { "path.path-2.loss" = 0 },\n', "", "`sets` has 2 tables for the 3 values of `plr2`"),
        ('{ "path.path-2.loss" = 0 }', '{ "path.path-1.loss" = 0 }', "with other keys than those of the axis"),
        ("p = 0.0175", "p = 1.75", "reading bursty: "),
        ('"path.path-2.loss" = 0 }', '"path.path-2.loss" = 0 }, 3', "which has to be a list of tables"),
    ],
)
def test_wrong_settings_of_axis_name_file_and_key(added: Added, old: str, new: str, said: str) -> None:
    assert old in BURSTY
    with pytest.raises(ExperimentError, match=r"experiments\.toml") as error:
        select("planted-paper/loss", added(BURSTY.replace(old, new)))
    assert said in str(error.value)


def test_measure_of_traces_is_refused_for_a_change(added: Added) -> None:
    with pytest.raises(ExperimentError, match="`measure` is `cwnd_mean_bytes`"):
        select("planted-paper/loss", added(COUNTER.replace("timeouts_by_ns2", "cwnd_mean_bytes")))
