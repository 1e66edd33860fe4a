"""Numbers that a source prints, taken from its claims, for the figures of this package that show the same quantity."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Literal

import pandas as pd

from anabranch.experiments.claims.claim import Claim
from anabranch.experiments.claims.quantity import At, Quantity
from anabranch.experiments.claims.value import Number
from anabranch.experiments.drawing.data import panels_of, shown_axis
from anabranch.experiments.measures.of_trace import OFFSETS_WINDOW_S
from anabranch.experiments.model import TRACED_FIGURES, Axis, Figure
from anabranch.experiments.plan import Setting

Extent = Literal["point", "mean", "largest"]
"""Scope of a number: one point of the axis, the mean over a range of it, or the maximum in a range."""

_OVER_TIME: Mapping[tuple[str, str], Extent] = {
    ("cwnd", "cwnd_mean_bytes"): "mean",
    ("cwnd", "cwnd_initial_bytes"): "point",
    ("throughput-time", "throughput_kbps"): "mean",
    ("tsn", "highest_tsn_received"): "point",
    ("out-of-order", "ooo_peak"): "largest",
}
"""Measures whose values a figure over time shows, by its kind."""


@dataclass(frozen=True, slots=True)
class Published:
    """Published number, from `low` to `high`, which are equal for a single number.

    The position is `x`, or the range from `x` to `x_end`; NaN is the begin or end of the figure. `path` is empty in a
    figure that does not distinguish paths. `ci_low` and `ci_high` are the ends of the published interval, or NaN.
    `claim` is the id of the claim, and `status` the status of that claim.
    """

    claim: str
    status: str
    panel: str
    scheme: str
    path: str
    extent: Extent
    x: float
    x_end: float
    low: float
    high: float
    ci_low: float
    ci_high: float


def published_values(figure: Figure, setting: Setting, claims: Iterable[Claim]) -> list[Published]:
    """Returns the published numbers that belong into a figure.

    A number belongs into it if it has the measure, the scheme and the axis values of a point of the figure or of a part
    of a line.
    """
    place = _over_time if figure.kind in TRACED_FIGURES else _along_axis
    found = []
    for claim in claims:
        number = claim.statement
        if not isinstance(number, Number) or (number.a.experiment or claim.experiment) != setting.experiment.id:
            continue
        for scheme in number.a.schemes:
            if scheme in figure.schemes:
                found += [_published(claim, number, scheme, *spot) for spot in place(figure, setting, number.a)]
    return found


def frame_of(published: Iterable[Published]) -> pd.DataFrame:
    """Returns the numbers as a table with a row for each, and a column for each field."""
    return pd.DataFrame([asdict(each) for each in published], columns=[field.name for field in fields(Published)])


_Spot = tuple[str, str, Extent, float, float]
"""Position of a number: panel, path, scope, and the begin and end on the axis."""


def _published(
    claim: Claim, number: Number, scheme: str, panel: str, path: str, extent: Extent, x: float, x_end: float
) -> Published:
    ci_low, ci_high = number.ci95 or (math.nan, math.nan)
    return Published(
        claim.id, claim.status, panel, scheme, path, extent, x, x_end, number.low, number.high, ci_low, ci_high
    )


def _along_axis(figure: Figure, setting: Setting, quantity: Quantity) -> Iterator[_Spot]:
    """Yields the positions of a quantity in a figure along an axis of the experiment."""
    if quantity.measure != figure.measure:
        return
    experiment = setting.experiment
    for panel, at in panels_of(figure, experiment):
        others = (axis for axis in experiment.axes if axis.name != figure.x)
        if not all(_same_values(axis, quantity.at, at) for axis in others):
            continue
        if figure.x is None:
            yield panel, "", "point", 0.0, 0.0
            continue
        axis = shown_axis(figure, experiment, figure.x)
        asked = experiment.axis(figure.x).only(quantity.at.get(figure.x, axis.values))
        positions = asked.positions
        if positions and set(positions) <= set(axis.positions):
            extent: Extent = "mean" if len(positions) > 1 else "point"
            yield panel, "", extent, min(positions), max(positions)


def _over_time(figure: Figure, setting: Setting, quantity: Quantity) -> Iterator[_Spot]:
    """Yields the positions of a quantity in a figure over time, which shows one cell in each panel."""
    measure = quantity.measure
    extent = _OVER_TIME.get((figure.kind, measure.name))
    if extent is None or measure.flow is not None or (measure.path is not None and measure.path not in figure.paths):
        return
    window_s = measure.window_s or (OFFSETS_WINDOW_S if extent == "largest" else (math.nan, math.nan))
    if extent == "point":
        window_s = (measure.time_s or 0.0,) * 2
    first = {axis.name: axis.values[:1] for axis in setting.axes}
    for panel, at in panels_of(figure, setting):
        if all(_same_values(axis, quantity.at, {**first, **at}) for axis in setting.experiment.axes):
            yield panel, measure.path or "", extent, *window_s


def _same_values(axis: Axis, one: At, other: At) -> bool:
    """Returns `True` if both restrict an axis to the same values."""
    return axis.only(one.get(axis.name, axis.values)).values == axis.only(other.get(axis.name, axis.values)).values
