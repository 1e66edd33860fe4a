"""Sweeps: scenarios times schemes times seeds, which survive what interrupts them."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

from anabranch.sweep.precision import Precision

if TYPE_CHECKING:
    from anabranch.results import Results
    from anabranch.sweep.axis import Over
    from anabranch.sweep.executors import ExecutorLike
    from anabranch.sweep.given_scenario import ScenarioLike
    from anabranch.sweep.seeds import Seeds

__all__ = ["CacheWarning", "Precision", "sweep"]


class CacheWarning(UserWarning):
    """Something is wrong with the cache that a sweep could do without."""


def sweep(
    scenario: ScenarioLike,
    over: Over | None = None,
    seeds: Seeds | None = None,
    *,
    set: Mapping[str, object] | None = None,
    until: Precision | None = None,
    executor: ExecutorLike = None,
    workers: int | None = None,
    worker_timeout_s: float = 60.0,
    cache: str | os.PathLike[str] | bool | None = True,
    progress: bool | None = None,
) -> Results:
    """Runs a scenario at every point of a grid, with every scheme and every seed.

    `scenario` is a `Scenario` or the path of a scenario file. `over` names what changes: each key of the scenario,
    dotted as in `--set`, with a list of its values; all combinations are run, the last key going fastest. A tuple of
    keys has a list of tuples of values and goes through them side by side. The key `"scheme"` has a list of schemes;
    the scenario's own are run if it is left out. `set` has values that hold for all points. `seeds` is a number, where
    20 stands for 1 to 20, or a list; the scenario's own are run if it is left out. With `until`, seeds are added to
    each point and scheme until the mean is as exact as the `Precision` asks: 1 to `most`, or in the order of the list.

    Native threads make the runs, `workers` of them or one per processor. Any `concurrent.futures.Executor` can do it
    instead, a `distributed.Client`, or `"processes:N"` or `"dask://HOST:PORT"`; then only text and figures travel, in
    units of about a second of work. A Dask cluster that has no workers is waited for `worker_timeout_s`. What comes
    out does not depend on any of this.

    A run that is finished is kept in the folder `cache` (if not given, `$ANABRANCH_CACHE` or `anabranch/runs` in the
    user's folder of caches), under a key made from the scenario at its point, the scheme, the seed, the content of
    files that flows send, and the engine. The same sweep, or another with some of the same runs, takes it from there.
    `None` keeps nothing. `progress` shows a bar on standard error (if not given, when that is a terminal).

    Raises, before the first run and with all that is wrong, `ScenarioError` and `SweepError`, and `CacheError` if a
    folder that was named cannot be used. Later, `RunError` if a run cannot be made, `ExecutorError` if workers fail,
    and `KeyboardInterrupt` after Ctrl-C; in these last two, `results` is what was finished if runs were begun. Warns
    with `CacheWarning` of entries that are damaged, which are computed again, and of runs that cannot be kept.

        results = anabranch.sweep(
            "scenarios/two-path.toml",
            over={"path.path-2.loss": [0, 0.01, 0.02], "scheme": ["cmt", "cmt-pf", "cmt(trigger=4)"]},
            seeds=20,
        )
        results.to_pandas().groupby(["path.path-2.loss", "scheme"]).goodput_kbps.describe()
    """
    from anabranch.sweep.steps import fill, open_cache, read_grid

    notices: list[str] = []
    try:
        return fill(
            read_grid(scenario, over, seeds, set, until),
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
