"""Paths that received new data, and the rules that chose them."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from anabranch.reporting.timeline.model import Shares, Track

if TYPE_CHECKING:
    import pandas as pd

WAIT = "wait"
_MAX_REASONS = 3
# Each chunk of new data has one of these decisions when it is assigned to a path, even if it is sent later.
_PLACES_NEW_DATA = ("schedule", "copies", "bind")


def decided_shares(decisions: pd.DataFrame, track: int, sender: Track, every_s: float) -> Shares:
    """Returns decisions about new data in bins of time: how many chose each path, or to wait, and why."""
    ways = (*sender.paths, WAIT)
    place = {way: index for index, way in enumerate(ways)}
    bins = max(math.ceil(sender.end_s / every_s - 1e-9), 1)
    counts = np.zeros((len(ways), bins), dtype=np.int64)
    reasons: dict[tuple[int, int], Counter[str]] = {}
    refused: dict[tuple[int, int], Counter[str]] = {}
    rows = decisions[decisions["decision"].isin(_PLACES_NEW_DATA)]
    spot = np.minimum((rows["time_s"].to_numpy() / every_s).astype(np.int64), bins - 1)
    kept = rows[["path", "reason", "refused"]].astype(object).fillna("").assign(bin=spot)
    for (bin_, chosen, reason, not_chosen), number in kept.value_counts(["bin", "path", "reason", "refused"]).items():
        for way in chosen.split():
            key = (place[way], int(bin_))
            counts[key] += number
            reasons.setdefault(key, Counter())[reason] += number
            refused.setdefault(key, Counter()).update({word.replace(":", " "): number for word in not_chosen.split()})
    return Shares(
        track, every_s, ways, counts, _most_common(reasons, counts.shape), _most_common(refused, counts.shape)
    )


def _most_common(
    counters: dict[tuple[int, int], Counter[str]], shape: tuple[int, ...]
) -> list[list[list[tuple[str, int]]]]:
    # Ties are broken by name, so that the order does not depend on the order of the trace.
    return [
        [
            sorted(counters.get((way, bin_), Counter()).items(), key=lambda item: (-item[1], item[0]))[:_MAX_REASONS]
            for bin_ in range(shape[1])
        ]
        for way in range(shape[0])
    ]
