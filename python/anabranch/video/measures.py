"""Measures of delivery that need no picture: frames by fate, stalls, and delays."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from anabranch import _native
from anabranch.video.fates import Delivery, Fate, as_native
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
    """Measures of one run. `fates` counts frames by type and fate. In a stall an older frame is shown."""

    fates: Mapping[FrameType, Mapping[Fate, int]]
    stalls: int
    stall_s: float
    longest_stall_s: float
    delays: Delays | None

    @property
    def frames(self) -> int:
        return sum(sum(counts.values()) for counts in self.fates.values())

    def count(self, fate: Fate) -> int:
        """Returns the number of frames with this fate."""
        return sum(counts[fate] for counts in self.fates.values())

    def dropped(self, kind: FrameType) -> int:
        """Returns the number of frames of this type that are not shown, for any reason."""
        return sum(count for fate, count in self.fates[kind].items() if fate is not Fate.GOOD)

    @property
    def decodable_ratio(self) -> float:
        """Ratio of good frames to all frames."""
        return self.count(Fate.GOOD) / self.frames


def delivery_measures(deliveries: Sequence[Delivery]) -> DeliveryMeasures:
    """Returns the measures of one run, computed as those of a scenario with a video flow."""
    frames = as_native([each.frame for each in deliveries])
    fates = [(each.fate.value, each.complete_ms) for each in deliveries]
    found = json.loads(_native.video_measures(frames, fates))
    return DeliveryMeasures(
        fates={kind: {fate: found["fates"][kind.value][fate.value] for fate in Fate} for kind in FrameType},
        stalls=found["stalls"],
        stall_s=found["stall_s"],
        longest_stall_s=found["longest_stall_s"],
        delays=None if found["delay"] is None else _delays(found["delay"]),
    )


def _delays(found: Mapping[str, float]) -> Delays:
    percentiles = {percent: found[f"p{percent}_ms"] for percent in PERCENTILES}
    return Delays(int(found["frames"]), found["mean_ms"], found["largest_ms"], percentiles)
