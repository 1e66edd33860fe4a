"""Sweeps: scenarios times schemes times seeds, which can be interrupted and resumed."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from anabranch.sweeps.precision import Precision

if TYPE_CHECKING:
    from anabranch.results import Results
    from anabranch.sweeps.axis import Over
    from anabranch.sweeps.executors import ExecutorLike
    from anabranch.sweeps.scenario_source import ScenarioLike
    from anabranch.sweeps.seeds import Seeds

__all__ = ["CacheWarning", "Precision", "sweep"]


class CacheWarning(UserWarning):
    """Problem of the cache that does not stop a sweep."""


def sweep(
    scenario: ScenarioLike,
    over: Over | None = None,
    seeds: Seeds | None = None,
    *,
    overrides: Mapping[str, object] | None = None,
    until: Precision | None = None,
    executor: ExecutorLike = None,
    workers: int | None = None,
    worker_timeout_s: float = 60.0,
    cache: str | os.PathLike[str] | bool | None = True,
    progress: bool | None = None,
) -> Results:
    """Runs a scenario at every point of a grid, with every scheme and every seed.

    `scenario` is a `Scenario` or the path of a scenario file. `over` maps each swept key of the scenario, dotted as in
    `--set`, to a list of its values. All combinations are run; the last key varies fastest. A tuple of keys with a list
    of tuples of values is swept side by side. The key `"scheme"` has a list of schemes (default: the scenario's own).
    `overrides` has values for all points, as `--set` has. `seeds` is a number, where 20 means 1 to 20, or a list
    (default: the scenario's own). With `until`, seeds are added to each point and scheme until the mean has the
    requested `Precision`: 1 to `max_seeds`, or in the order of the list.

    Native threads make the runs, `workers` of them or one per processor. Alternatives are any
    `concurrent.futures.Executor`, a `distributed.Client`, `"processes:N"` and `"dask://HOST:PORT"`. Only text and
    figures are sent to them, in units of about a second of work. A Dask cluster may be without workers for
    `worker_timeout_s`. The results do not depend on the executor.

    Finished runs are stored in the folder `cache` (default: `$ANABRANCH_CACHE`, or `anabranch/runs` in the user's cache
    folder). Their key is made from the scenario at its point, the scheme, the seed, the content of files that flows
    send, and the engine. The same sweep, or another with some of the same runs, reuses them. `None` disables the cache.
    `progress` shows a bar on standard error (default: if that is a terminal).

    Before the first run, raises `ScenarioError` and `SweepError` with all errors, and `CacheError` if a named folder
    cannot be used. Later it raises `RunError` if a run cannot be made, `ExecutorError` if workers fail, and
    `KeyboardInterrupt` after Ctrl-C. The last two have the finished runs as `results` if runs were begun. Issues a
    `CacheWarning` for damaged entries, which are computed again, and for runs that cannot be stored.

        results = anabranch.sweep(
            "scenarios/two-path.toml",
            over={"path.path-2.loss": [0, 0.01, 0.02], "scheme": ["cmt", "cmt-pf", "cmt(trigger=4)"]},
            seeds=20,
        )
        results.to_pandas().groupby(["path.path-2.loss", "scheme"]).goodput_kbps.describe()
    """
    from anabranch.sweeps.steps import fill, open_cache, read_grid

    notices: list[str] = []
    try:
        return fill(
            read_grid(scenario, over, seeds, overrides, until),
            until=until,
            executor=executor,
            workers=workers,
            worker_timeout_s=worker_timeout_s,
            cache=open_cache(cache, notices.append),
            progress=progress,
            notify=notices.append,
        )
    finally:
        for notice in notices:
            warnings.warn(notice, CacheWarning, stacklevel=2)
