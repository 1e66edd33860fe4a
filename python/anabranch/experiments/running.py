"""Runs the experiments of one folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.experiments.outcome import Outcome
    from anabranch.sweeps.executors import ExecutorLike


def run_experiments(
    folder: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    quick: bool = False,
    seeds: int | None = None,
    cache: str | os.PathLike[str] | bool | None = True,
    executor: ExecutorLike = None,
    workers: int | None = None,
    progress: bool | None = None,
) -> Outcome:
    """Runs the experiments of a folder, judges their claims, and writes pages, figures and data to `out`.

    The folder has `study.toml`, `experiments.toml`, `claims.toml` and scenarios. `quick` and `seeds` reduce the runs as
    `anabranch papers reproduce` does; `cache`, `executor`, `workers` and `progress` are those of `anabranch.sweep`.
    Finished runs stay in the cache, so that an interrupted call resumes. Returns the outcome, which is also written to
    `out/verdicts.json`.

    Raises `ExperimentError` if the folder is wrong or `out` cannot be written, and the errors of `anabranch.sweep`.
    """
    from anabranch.experiments.pipeline import reproduce
    from anabranch.experiments.plan import Scope
    from anabranch.experiments.selection import Selection
    from anabranch.experiments.study import read_study
    from anabranch.experiments.sweeps import SweepOptions

    study = read_study(Path(folder).resolve())
    outcome, _ = reproduce(
        [Selection(study, study.experiments)],
        Path(out),
        Scope(quick=quick, seeds=seeds),
        SweepOptions(cache, executor, workers, progress),
    )
    return outcome
