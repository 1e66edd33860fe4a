"""Drawings of the page: throughput of paths, quality and fates over time, as SVG with the width of its container.

The horizontal unit is a frame, so that all panels of a page are aligned. Curves keep their line width when they are
stretched. Colours are CSS variables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import Any

import numpy as np
from markupsafe import Markup

from anabranch.video.fates import Fate
from anabranch.video.format import FrameFormat
from anabranch.video.metrics import Values

# Height of a panel in its own units. The style sheet sets it in pixels.
HEIGHT = 100.0
# Heights of bars in the strip of fates, which differ so that fates are distinguishable without colours.
_FATE_HEIGHTS = {Fate.GOOD: 30.0, Fate.UNDECODABLE: 55.0, Fate.LATE: 78.0, Fate.LOST: 100.0}
# Maximum number of points of a curve. More would be drawn over each other.
_MAX_POINTS = 1500


@dataclass(frozen=True, slots=True)
class Scale:
    """Values at the bottom and at the top of a panel."""

    low: float
    high: float

    def place(self, value: float) -> float:
        """Returns the distance of a value from the top."""
        part = (value - self.low) / (self.high - self.low)
        return HEIGHT * (1 - min(max(part, 0.0), 1.0))


def scale_of(values: Sequence[float], *, from_zero: bool = False) -> Scale:
    """Returns a scale that fits all values with a margin."""
    low, high = (0.0 if from_zero else min(values, default=0.0)), max(values, default=1.0)
    if high <= low:
        low, high = low - 0.5, low + 0.5
    room = (high - low) * 0.05
    return Scale(low if from_zero else low - room, high + room)


def quality_panel(values: Values, scale: Scale) -> Markup:
    """Draws a curve with the least value of each few frames, so that short damage is visible in a long clip."""
    step = max(math.ceil(len(values) / _MAX_POINTS), 1)
    points = [(at, float(values[at : at + step].min())) for at in range(0, len(values), step)]
    return _panel(len(values), [_curve(points, scale, "var(--ink)")])


def fate_strip(fates: Sequence[Fate]) -> Markup:
    """Draws a bar for each stretch of frames of one fate."""
    bars: list[str] = []
    at = 0
    for fate, group in groupby(fates):
        width = len(list(group))
        height = _FATE_HEIGHTS[fate]
        bars.append(
            f'<rect x="{at}" y="{HEIGHT - height:g}" width="{width}" height="{height:g}" fill="var(--{fate.value})"/>'
        )
        at += width
    return _panel(len(fates), bars)


def place_of(shape: FrameFormat, frames: int, time_s: float) -> float:
    """Returns the place of a time on the axis, on which all frames in the order of display have the same width."""
    if shape.times_us is None:
        return time_s * float(shape.rate)
    times_s = [shape.time_ms(place) / 1000 for place in range(frames + 1)]
    if 0 <= time_s <= times_s[-1]:
        return float(np.interp(time_s, times_s, range(frames + 1)))
    return time_s * float(shape.rate) if time_s < 0 else frames + (time_s - times_s[-1]) * float(shape.rate)


def path_panel(
    path: Mapping[str, Any], timeline: Mapping[str, Any], frames: int, shape: FrameFormat, scale: Scale
) -> Markup:
    """Draws throughput of a path as an area, and below it a tick for each bin with dropped packets."""
    begin_s, width_s = -timeline["begins_s"], timeline["width_s"]
    edges = [place_of(shape, frames, begin_s + at * width_s) for at in range(len(path["kbps"]) + 1)]
    bins = list(pairwise(edges))
    corners = [
        corner for (x, end), value in zip(bins, path["kbps"], strict=True) for corner in ((x, value), (end, value))
    ]
    drops = [
        f'<rect x="{x:.2f}" y="88" width="{end - x:.2f}" height="12" fill="var(--dropped)"/>'
        for (x, end), count in zip(bins, path["dropped"], strict=True)
        if count
    ]
    return _panel(frames, [_area(corners, scale), *drops])


def _panel(frames: int, content: Sequence[str]) -> Markup:
    # All content is numbers or constants.
    return Markup(
        f'<svg viewBox="0 0 {frames} {HEIGHT:g}" preserveAspectRatio="none" aria-hidden="true">{"".join(content)}</svg>'
    )


def _curve(points: Sequence[tuple[float, float]], scale: Scale, colour: str) -> str:
    path = " ".join(f"{x:g},{scale.place(value):.2f}" for x, value in points)
    return f'<polyline points="{path}" fill="none" stroke="{colour}" vector-effect="non-scaling-stroke"/>'


def _area(points: Sequence[tuple[float, float]], scale: Scale) -> str:
    if not points:
        return ""
    path = " ".join(f"{x:.2f},{scale.place(value):.2f}" for x, value in points)
    closed = f"{points[0][0]:.2f},{HEIGHT:g} {path} {points[-1][0]:.2f},{HEIGHT:g}"
    return f'<polygon points="{closed}" fill="var(--area)" stroke="none"/>'


def ticks(frames: int, shape: FrameFormat) -> Iterator[tuple[float, str]]:
    """Yields marks of the time axis: their places in percent, and their labels in seconds."""
    duration_s = shape.time_ms(frames) / 1000
    steps = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600)
    step_s = next((step for step in steps if duration_s / step <= 8), 7200)
    number = 0
    while number * step_s < duration_s:
        yield place_of(shape, frames, number * step_s) / frames * 100, f"{number * step_s:g} s"
        number += 1
