"""Measures of delivery that need no picture: frames by fate, stalls, and delays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

from anabranch.video.fates import Delivery, Fate
from anabranch.video.frame import FrameType

PERCENTILES = (50, 95, 99)


@dataclass(frozen=True, slots=True)
class Delays:
    """Delays of complete frames, in milliseconds. `percentiles_ms` are by nearest rank."""

    frames: int
    mean_ms: float
    largest_ms: float
    percentiles_ms: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class DeliveryMeasures:
    """`fates` counts frames by type and fate. A stall is a stretch in which an older frame is shown."""

    fates: Mapping[FrameType, Mapping[Fate, int]]
    stalls: int
    stall_s: float
    longest_stall_s: float
    delays: Delays | None

    @property
    def frames(self) -> int:
        return sum(sum(counts.values()) for counts in self.fates.values())

    def count(self, fate: Fate) -> int:
        """Frames of this fate."""
        return sum(counts[fate] for counts in self.fates.values())

    def dropped(self, kind: FrameType) -> int:
        """Frames of this type that are not shown, for whatever reason."""
        return sum(count for fate, count in self.fates[kind].items() if fate is not Fate.GOOD)

    @property
    def decodable_ratio(self) -> float:
        """Good frames in all frames."""
        return self.count(Fate.GOOD) / self.frames


def delivery_measures(deliveries: Sequence[Delivery], rate: Fraction) -> DeliveryMeasures:
    """The measures of one run."""
    counted = Counter((each.frame.type, each.fate) for each in deliveries)
    fates = {kind: {fate: counted[kind, fate] for fate in Fate} for kind in FrameType}
    shown = sorted(deliveries, key=lambda each: each.frame.display)
    runs = [len(list(group)) for good, group in groupby(shown, key=lambda each: each.fate is Fate.GOOD) if not good]
    return DeliveryMeasures(
        fates=fates,
        stalls=len(runs),
        stall_s=float(sum(runs) / rate),
        longest_stall_s=float(max(runs, default=0) / rate),
        delays=_delays([each.delay_ms for each in deliveries if each.delay_ms is not None]),
    )


def _delays(delays_ms: list[float]) -> Delays | None:
    if not delays_ms:
        return None
    ordered = sorted(delays_ms)
    percentiles = {percent: ordered[-(-percent * len(ordered) // 100) - 1] for percent in PERCENTILES}
    return Delays(len(ordered), sum(ordered) / len(ordered), ordered[-1], percentiles)
