"""Steps of a sweep, common to the function and the command."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from anabranch.errors import CacheError, ExecutorError, SchemeError, SweepError
from anabranch.policy.python_scheme import PythonScheme, resolve_scheme
from anabranch.policy.slots import Policy
from anabranch.results import Results
from anabranch.sweeps.axis import Over, read_axes
from anabranch.sweeps.cache import Cache, default_folder
from anabranch.sweeps.executors import ExecutorLike, native_threads, open_workers
from anabranch.sweeps.grid import Grid, make_grid
from anabranch.sweeps.native import NativeThreads
from anabranch.sweeps.pool import Pool
from anabranch.sweeps.precision import Precision
from anabranch.sweeps.progress import Progress
from anabranch.sweeps.runner import Backend, Runner
from anabranch.sweeps.scenario_source import ScenarioLike, read_scenario
from anabranch.sweeps.seeds import Seeds, read_seeds
from anabranch.values import Value, plain, real_number, whole_number
from anabranch.version import engine

_SCHEME = "scheme"


def read_grid(
    scenario: ScenarioLike,
    over: Over | None,
    seeds: Seeds | None,
    overrides: Mapping[str, object] | None,
    until: Precision | None,
) -> Grid:
    """Reads and checks the grid. Raises `ScenarioError` and `SweepError` with all errors."""
    source = read_scenario(scenario)
    over = dict(over or {})
    schemes = over.pop(_SCHEME, None)
    faults: list[str] = []
    with _gathering(faults):
        fixed = _plain_overrides(overrides or {})
    with _gathering(faults):
        axes = read_axes(over, overrides or {})
    with _gathering(faults):
        listed = None if schemes is None else _schemes(schemes)
    with _gathering(faults):
        numbers = read_seeds(seeds, until)
    if faults:
        raise SweepError("\n".join(f"{source.file}: {line}" for fault in faults for line in fault.splitlines()))
    return make_grid(source, axes, fixed, listed, numbers, engine())


@contextlib.contextmanager
def _gathering(faults: list[str]) -> Iterator[None]:
    try:
        yield
    except SweepError as error:
        faults.append(str(error))


def _plain_overrides(overrides: Mapping[str, object]) -> dict[str, Value]:
    try:
        return {str(key): plain(value) for key, value in overrides.items()}
    except (TypeError, ValueError) as error:
        raise SweepError(f"`overrides`: {error}") from error


def _schemes(given: Any) -> list[str | PythonScheme]:
    if isinstance(given, (str, Policy)) or not isinstance(given, Iterable):
        raise SweepError(f'`scheme`: expected a list of schemes such as ["cmt", "cmt-pf"], found {given!r}')
    schemes = list(given)
    if not schemes:
        raise SweepError(f'`scheme`: expected a list of schemes such as ["cmt", "cmt-pf"], found {schemes!r}')
    try:
        return [resolve_scheme(scheme) for scheme in schemes]
    except SchemeError as error:
        raise SweepError(f"`scheme`: {error}") from error


def open_cache(cache: str | os.PathLike[str] | bool | None, notify: Callable[[str], None]) -> Cache | None:
    """Returns the cache in a folder, in the default one (`True`), or none.

    Raises `CacheError` if a named folder cannot be used. If the default one cannot, the sweep continues without it, and
    `notify` gets a message.
    """
    if cache is None or cache is False:
        return None
    if cache is not True:
        return Cache.open(Path(cache))
    try:
        return Cache.open(default_folder())
    except CacheError as error:
        notify(f"{error}. The sweep continues without a cache")
        return None


def fill(
    grid: Grid,
    *,
    until: Precision | None,
    executor: ExecutorLike,
    workers: int | None,
    worker_timeout_s: float = 60.0,
    cache: Cache | None,
    progress: bool | None,
    notify: Callable[[str], None],
    observe: Callable[[int, str], None] | None = None,
) -> Results:
    """Makes the runs of a grid that are not in the cache. Raises `ExecutorError`, `Interrupted` and `RunError`.

    `observe` gets the position and the figures of each run, as text of the native module, from the calling thread.
    """
    workers = None if workers is None else whole_number("workers", workers, least=1)
    worker_timeout_s = real_number("worker_timeout_s", worker_timeout_s, "seconds, more than 0", infinite=True)

    def run(backend: Backend) -> Results:
        with Progress(progress) as bar:
            return Runner(
                grid, backend, engine(), cache=cache, until=until, progress=bar, notify=notify, observe=observe
            ).run()

    native, threads = native_threads(executor, workers)
    if native:
        return run(NativeThreads(threads))
    if own := list(grid.python_schemes):
        raise ExecutorError(
            f"{own[0]} is a scheme in Python, which runs in this process only: leave `executor` out, or the scheme"
        )
    pool = Pool(open_workers(executor, workers, worker_timeout_s), engine())
    try:
        results = run(pool)
    except BaseException:
        pool.workers.close(at_once=True)
        raise
    pool.workers.close(at_once=False)
    return results
