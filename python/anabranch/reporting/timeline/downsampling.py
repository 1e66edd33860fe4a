"""Fewer points with the same shape."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from anabranch.reporting.timeline.model import Seconds, Values


def changes(values: Values) -> npt.NDArray[np.intp]:
    """The positions at which a value differs from the one before it. Nothing is lost by leaving out the others."""
    if len(values) == 0:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))


def envelope(times_s: Seconds, values: Values, most: int) -> npt.NDArray[np.intp]:
    """At most so many positions, in order, that keep the shape of a line.

    Of each of `most // 4` equal stretches of time they are those of the first and the last value and of the least and
    the greatest one. All positions if there are no more than `most`.
    """
    if len(times_s) <= most:
        return np.arange(len(times_s))
    stretches = max(most // 4, 1)
    start_s, end_s = times_s[0], times_s[-1]
    width_s = (end_s - start_s) / stretches or 1.0
    stretch = np.minimum(((times_s - start_s) / width_s).astype(np.int64), stretches - 1)
    order = np.lexsort((values, stretch))
    starts = np.flatnonzero(np.concatenate(([True], stretch[1:] != stretch[:-1])))
    ends = np.concatenate((starts[1:], [len(stretch)])) - 1
    # Once sorted within a stretch, the least value stands where the first one stood, the greatest where the last did.
    return np.unique(np.concatenate((starts, ends, order[starts], order[ends])))


def evenly(count: int, most: int) -> npt.NDArray[np.intp]:
    """At most so many of `count` positions, evenly spread over them, with the first and the last."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.intp))


def allot(sizes: Sequence[int], budget: int) -> list[int]:
    """How many points each may keep, of `budget` in all. What needs less than an equal part leaves the rest to others.

    >>> allot([10, 1000, 1000], 210)
    [10, 100, 100]
    """
    allotted = [0] * len(sizes)
    remaining = budget
    for place, index in enumerate(sorted(range(len(sizes)), key=lambda index: sizes[index])):
        allotted[index] = min(sizes[index], remaining // (len(sizes) - place))
        remaining -= allotted[index]
    return allotted
