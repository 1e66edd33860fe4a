"""Reduction of the number of points that keeps the shape of a line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from anabranch.reporting.timeline.model import Seconds, Values


def changes(values: Values) -> npt.NDArray[np.intp]:
    """Returns the positions at which a value differs from the one before it. They determine the whole line."""
    if len(values) == 0:
        return np.empty(0, dtype=np.intp)
    return np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))


def envelope(times_s: Seconds, values: Values, most: int) -> npt.NDArray[np.intp]:
    """Returns at most `most` positions, in order, that keep the shape of a line.

    The positions are those of the first, last, least and greatest value in each of `most // 4` equal stretches of time.
    Returns all positions if there are no more than `most`.
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
    # In the sorted stretch, the least value is at the place of the first one, and the greatest at that of the last.
    return np.unique(np.concatenate((starts, ends, order[starts], order[ends])))


def evenly(count: int, most: int) -> npt.NDArray[np.intp]:
    """Returns at most `most` of `count` positions, evenly spread, with the first and the last."""
    if count <= most:
        return np.arange(count)
    return np.unique(np.linspace(0, count - 1, most).round().astype(np.intp))


def allot(sizes: Sequence[int], budget: int) -> list[int]:
    """Returns the number of points that each line may keep, of `budget` in all. Lines share what others do not need.

    >>> allot([10, 1000, 1000], 210)
    [10, 100, 100]
    """
    allotted = [0] * len(sizes)
    remaining = budget
    for place, index in enumerate(sorted(range(len(sizes)), key=lambda index: sizes[index])):
        allotted[index] = min(sizes[index], remaining // (len(sizes) - place))
        remaining -= allotted[index]
    return allotted
