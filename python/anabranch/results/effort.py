"""Counts of runs that a sweep computed and took from the cache, and its overhead."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Effort:
    """What a sweep took. None of this is in the results: they are the same whatever it took.

    `computed` and `cached` count runs, and so does `resumed`: those that were taken from the same sweep, which had been
    interrupted. `uncached` counts the runs that no later sweep takes from the cache, since they depend on more than
    could be read of their schemes, and `uncached_why` names these schemes with the reason.

    `damaged` counts entries of the cache that could not be used and were replaced, `unkept` runs that could not be
    written to the cache. `units` of work went to an executor (none went to native threads), with `overhead` seconds for
    a second of computing: the time between the units of a worker in which it computed nothing, without the start of the
    worker. `capped` names points, each with its scheme, that have not reached the precision asked for.
    """

    computed: int = 0
    cached: int = 0
    resumed: int = 0
    uncached: int = 0
    uncached_why: tuple[str, ...] = ()
    damaged: int = 0
    unkept: int = 0
    units: int = 0
    overhead: float | None = None
    capped: tuple[str, ...] = ()
