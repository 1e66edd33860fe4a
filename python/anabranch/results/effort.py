"""Counts of runs that a sweep computed and took from the cache, and its overhead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    """Cost of a sweep. It is not part of the results, which do not depend on it.

    `computed`, `cached` and `resumed` count runs; `resumed` ones were taken from the same sweep, which had been
    interrupted. `uncached` counts the runs that no later sweep takes from the cache, since they depend on more than
    could be read of their schemes. `uncached_reasons` names these schemes with the reason.

    `damaged` counts entries of the cache that could not be used and were replaced, `unstored` runs that could not be
    written to the cache. `units` of work were sent to an executor (none with native threads). `overhead` is the time
    between the units of a worker in which it computed nothing, in seconds for a second of computing, without the start
    of the worker. `capped` names points, each with its scheme, that have not reached the requested precision.
    """

    computed: int = 0
    cached: int = 0
    resumed: int = 0
    uncached: int = 0
    uncached_reasons: tuple[str, ...] = ()
    damaged: int = 0
    unstored: int = 0
    units: int = 0
    overhead: float | None = None
    capped: tuple[str, ...] = ()
