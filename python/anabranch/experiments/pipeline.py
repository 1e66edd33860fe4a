"""Complete reproduction: runs, verdicts, files and cost."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TypeAlias

from anabranch.errors import ExperimentError
from anabranch.experiments import outcome as out
from anabranch.experiments.cost import Cost
from anabranch.experiments.drawing.files import write_figure
from anabranch.experiments.jobs import Job, Measured, Measurements, jobs_of, run_job
from anabranch.experiments.judging import judge_study
from anabranch.experiments.pages.document import markdown
from anabranch.experiments.pages.experiment import experiment_blocks, pictures_of
from anabranch.experiments.pages.index import index_page
from anabranch.experiments.pages.summary import summary_blocks
from anabranch.experiments.plan import Scope
from anabranch.experiments.progress import progress_of
from anabranch.experiments.sample_table import SAMPLES_FILE, write_samples
from anabranch.experiments.selection import Selection
from anabranch.experiments.stored import about_now
from anabranch.experiments.sweeps import SweepOptions
from anabranch.experiments.tracing import Tracer, open_traces
from anabranch.experiments.workers import Workers

_Figures: TypeAlias = "dict[str, list[Future[out.FigureOutcome]]]"
"""Figures of experiments, by id, that are being drawn."""

_FORMATS = {False: ("svg", "png"), True: ("svg",)}
"""File formats of pictures, by `True` for a quick reproduction. It omits PNG, which takes long for many dots."""


def reproduce(
    selections: Sequence[Selection],
    folder: Path,
    scope: Scope,
    options: SweepOptions,
    processes: Workers | None = None,
) -> tuple[out.Outcome, Cost]:
    """Runs the selected experiments, judges their claims, and writes pages, figures and data into a folder.

    `processes` trace runs and draw figures. If it is `None`, the function starts worker processes and ends them. After
    Ctrl-C, finished runs and values from traces stay in the cache, and complete studies have pages. Raises
    `ExperimentError` if the folder cannot be written to, and the errors of `anabranch.sweep`.
    """
    jobs = jobs_of(selections, scope)
    measured, cost = Measured(), Cost()
    studies: list[out.StudyOutcome] = []
    started = time.monotonic()
    _check_folder(folder)
    own = Workers(options.workers) if processes is None else nullcontext(processes)
    with own as workers, progress_of(sum(job.runs for job in jobs), options.progress, "experiments") as bar:
        tracer = Tracer(open_traces(options.cache), workers, cost)
        for selection in selections:
            figures: _Figures = {}
            for job in jobs:
                if job.study is not selection.study:
                    continue
                experiment, change = job.setting.experiment, job.setting.change
                bar.at(f"{job.study.key}/{experiment.id}{f' {change.id}' if change else ''}")
                measurements = run_job(job, options, tracer, cost, bar.update)
                measured.put(job.study, measurements)
                if change is None and experiment in selection.experiments:
                    figures[experiment.id] = _draw(job, measurements, folder, _FORMATS[scope.quick], workers)
            studies.append(_written(selection, measured, figures, folder))
    outcome: out.Outcome = {"format": out.FORMAT, "scope": asdict(scope), "studies": studies}
    cost.seconds = time.monotonic() - started
    _write_summary(outcome, cost, folder)
    return outcome, cost


def _draw(
    job: Job, measurements: Measurements, folder: Path, formats: Sequence[str], workers: Workers
) -> list[Future[out.FigureOutcome]]:
    """Submits the figures of an experiment to the worker processes."""
    experiment = job.setting.experiment
    place = folder / job.study.key / experiment.id
    claims = job.study.claims
    return [workers.submit(write_figure, figure, measurements, claims, place, formats) for figure in experiment.figures]


def _check_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".anabranch"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise ExperimentError(
            f"{folder}: cannot be written to: {error.strerror}; name another one with --out"
        ) from error


def _written(selection: Selection, measured: Measured, figures: _Figures, folder: Path) -> out.StudyOutcome:
    """Judges the claims of a study and writes the samples and the page of each experiment, once figures are drawn."""
    study = selection.study
    for experiment in study.experiments:
        if found := measured.of_experiment(study, experiment.id):
            write_samples(experiment, found, folder / study.key / experiment.id / SAMPLES_FILE)
    drawn = {experiment: [future.result() for future in futures] for experiment, futures in figures.items()}
    outcome = judge_study(selection, measured, drawn)
    for each in outcome["experiments"]:
        blocks = list(experiment_blocks(outcome, each, 1, pictures_of(each)))
        _write(folder / study.key / each["id"] / "claims.md", markdown(blocks))
    if study.notes:
        _write(folder / study.key / "notes.md", study.notes)
    return outcome


def _write_summary(outcome: out.Outcome, cost: Cost, folder: Path) -> None:
    """Writes the pages of the whole reproduction, and then `verdicts.json` and the file with date and version."""
    _write(folder / "summary.md", markdown(list(summary_blocks(outcome))))
    _write(folder / "index.html", index_page(outcome))
    _write(folder / out.RUN_FILE, json.dumps(about_now(cost), indent=2) + "\n")
    _write(folder / out.VERDICTS_FILE, json.dumps(outcome, indent=1, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
