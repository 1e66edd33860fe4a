"""A reproduction from beginning to end: runs, verdicts, files, and what it cost."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeAlias

from tqdm import tqdm

from anabranch.engine import engine
from anabranch.papers import outcome as out
from anabranch.papers.catalogue import Selection
from anabranch.papers.collecting import Cost, Means
from anabranch.papers.drawing.files import write_figure
from anabranch.papers.error import PaperError
from anabranch.papers.pages.document import markdown, page
from anabranch.papers.pages.experiment import experiment_blocks
from anabranch.papers.pages.summary import index_blocks, summary_blocks
from anabranch.papers.plan import Scope
from anabranch.papers.reproduce import Job, Measured, Samples, jobs_of, judge_paper, measure
from anabranch.papers.tracing import Tracer, open_cache
from anabranch.papers.workers import Workers

VERDICTS = "verdicts.json"
RUN = "run.json"


@dataclass(frozen=True, slots=True)
class Spent:
    """What a reproduction took. None of it is in the verdicts."""

    seconds: float
    computed: int
    cached: int
    packets: float

    def __str__(self) -> str:
        """As the command prints it at its end."""
        text = f"{self.computed + self.cached:,} runs, {self.cached:,} of them from the cache, in {self.seconds:.0f} s"
        if not self.computed:
            return text
        return (
            f"{text}; computed were {self.computed / self.seconds:,.0f} runs and "
            f"{self.packets / self.seconds:,.0f} simulated packets with DATA per second"
        )


def reproduce(
    selections: Sequence[Selection],
    folder: Path,
    scope: Scope,
    means: Means,
    traces: Path | None,
    progress: bool | None = None,
    processes: Workers | None = None,
) -> tuple[out.Outcome, Spent]:
    """Runs everything that is selected, judges the claims and writes pages, figures and data into a folder.

    `traces` is the folder of the cache for what is taken from traces. `processes` trace and draw; some are started, and
    ended again, if there are none. What is finished when Ctrl-C comes stays in the caches; pages are written for papers
    that are complete. Raises `PaperError` if the folder cannot be written to, and what `anabranch.sweep` raises.
    """
    jobs = jobs_of(selections, scope)
    measured, cost = Measured(), Cost()
    papers: list[out.PaperOutcome] = []
    started = time.monotonic()
    _check_folder(folder)
    own = Workers(means.workers) if processes is None else nullcontext(processes)
    with own as workers, _Bar(jobs, progress) as bar:
        tracer = Tracer(open_cache(traces), workers)
        for selection in selections:
            figures: _Figures = {}
            for job in jobs:
                if job.paper is selection.paper:
                    bar.begin(job)
                    samples = measure(job, means, tracer, cost, bar.done)
                    measured.samples[job.paper.key, job.setting.experiment.id, job.setting.id] = samples
                    if job.setting.change is None and job.setting.experiment in selection.experiments:
                        figures |= _draw(job, samples, folder, workers)
            papers.append(_written(selection, measured, figures, folder))
    outcome: out.Outcome = {"format": out.FORMAT, "scope": asdict(scope), "papers": papers}
    seconds = time.monotonic() - started
    spent = Spent(seconds, cost.computed + tracer.computed, cost.cached + tracer.cached, cost.packets + tracer.packets)
    _write_summary(outcome, spent, folder)
    return outcome, spent


_Figures: TypeAlias = "dict[str, list[Future[out.FigureOutcome]]]"
"""Figures of experiments, by id, that are being drawn."""


def _draw(job: Job, samples: Samples, folder: Path, workers: Workers) -> _Figures:
    """Has the figures of an experiment drawn."""
    experiment = job.setting.experiment
    place = folder / job.paper.key / experiment.id
    return {experiment.id: [workers.submit(write_figure, figure, samples, place) for figure in experiment.figures]}


class _Bar:
    """How far the whole reproduction has come, on standard error; unseen if that is no terminal."""

    def __init__(self, jobs: Sequence[Job], shown: bool | None) -> None:
        disable = None if shown is None else not shown
        total = sum(job.runs for job in jobs)
        self._bar: Any = tqdm(
            total=total, unit="run", desc="papers", disable=disable, dynamic_ncols=True, smoothing=0.05
        )

    def __enter__(self) -> _Bar:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()

    def begin(self, job: Job) -> None:
        """Says what is run now."""
        experiment, setting = job.setting.experiment, job.setting
        change = "" if setting.change is None else f" {setting.id}"
        self._bar.set_description(f"{job.paper.key}/{experiment.id}{change}")

    def done(self, runs: int) -> None:
        """So many more runs are there."""
        self._bar.update(runs)


def _check_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe = folder / ".anabranch"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise PaperError(f"{folder}: cannot be written to: {error.strerror}; name another one with --out") from error


def _written(selection: Selection, measured: Measured, figures: _Figures, folder: Path) -> out.PaperOutcome:
    """Judges the claims of a paper and writes the page of each experiment, once its figures are drawn."""
    paper = selection.paper
    drawn = {experiment: [future.result() for future in futures] for experiment, futures in figures.items()}
    outcome = judge_paper(selection, measured, drawn)
    for each in outcome["experiments"]:
        blocks = list(experiment_blocks(outcome, each, 1, ""))
        _write(folder / paper.key / each["id"] / "claims.md", markdown(blocks))
    if paper.notes:
        _write(folder / paper.key / "notes.md", paper.notes)
    return outcome


def _write_summary(outcome: out.Outcome, spent: Spent, folder: Path) -> None:
    """The pages about everything; last of all `verdicts.json` and what says when and by what it was made."""
    _write(folder / "summary.md", markdown(list(summary_blocks(outcome))))
    _write(folder / "index.html", page("The papers, reproduced", list(index_blocks(outcome))))
    about = asdict(engine()) | {
        "date": datetime.now(timezone.utc).date().isoformat(),
        "seconds": round(spent.seconds, 1),
        "runs_computed": spent.computed,
        "runs_cached": spent.cached,
        "packets": round(spent.packets),
    }
    _write(folder / RUN, json.dumps(about, indent=2) + "\n")
    _write(folder / VERDICTS, json.dumps(outcome, indent=1, ensure_ascii=False) + "\n")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
