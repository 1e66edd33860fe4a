"""Figures that suit the results, and the lines of Python that draw them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from anabranch.errors import FigureError, StatisticsError
from anabranch.figures.labels import key_label, metric_label
from anabranch.quantity import numbers_of
from anabranch.reporting.content import Figure
from anabranch.reporting.points import Point, points_of, value_text, varied_keys
from anabranch.reporting.svg import inline_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from anabranch.results import Results

MAX_FIGURES = 12
"""Maximum number of figures of a report."""

# Higher than the default of figures: legends with many schemes go below the axes.
_HEIGHT_IN = 2.9

# Bars of more points than this are too thin to compare.
_MAX_GROUPS = 8

_METRICS = ("goodput_kbps", "transfer_s", "retransmissions", "rwnd_blocked_s")


@dataclass(frozen=True, slots=True)
class Charts:
    """Figures, lines of Python that draw them, and notes on all of them."""

    figures: tuple[Figure, ...]
    code: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """Planned figure: a function of `anabranch` with its arguments."""

    caption: str
    function: Literal["plot_metric", "plot_bars"]
    metric: str
    arguments: dict[str, Any] = field(default_factory=dict)

    @property
    def code(self) -> str:
        given = [f"{name}={value!r}" for name, value in self.arguments.items() if value not in (None, {})]
        return f"anabranch.{self.function}({', '.join(['results', repr(self.metric), *given])})"

    def draw(self, results: Results, axes: Axes) -> None:
        """Draws the figure."""
        from anabranch import figures

        getattr(figures, self.function)(results, self.metric, **self.arguments, ax=axes)


def charts_of(results: Results, baseline: str | None) -> Charts:
    """Draws the figures of these results.

    The x axis is the swept key that has the most values, with lines if these are numbers and bars otherwise. If no key
    is swept, schemes are drawn side by side. Each combination of values of further swept keys has its own figure of
    goodput; the other metrics are drawn at the first combination.
    """
    from anabranch.figures import styled_axes

    plans = list(_plans(results, baseline))
    figures, code, notes = [], [], []
    for number, plan in enumerate(plans[:MAX_FIGURES], 1):
        try:
            with styled_axes(height_in=_HEIGHT_IN) as axes:
                plan.draw(results, axes)
                figure = inline_svg(axes, f"figure-{number}", plan.caption)
        except (FigureError, StatisticsError) as error:
            notes.append(f"{plan.caption}: not drawn: {error}.")
        else:
            figures.append(figure)
            code.append(plan.code)
    if len(plans) > MAX_FIGURES:
        left = len(plans) - MAX_FIGURES
        notes.append(
            f"{left} more figures would be like these, for other values of the swept keys: anabranch plot draws them."
        )
    return Charts(tuple(figures), tuple(code), tuple(notes))


def _plans(results: Results, baseline: str | None) -> Iterator[Plan]:
    points = points_of(results)
    keys = varied_keys(points)
    along = _along(keys, points)
    others = [key for key in keys if key != along]
    places = list(
        {tuple(at.values()): at for point in points if (at := {key: point[key] for key in others}) or True}.values()
    )
    groups = len({point[along] for point in points}) if along is not None else 1
    metrics = _metrics(results)
    yield _plan(results, metrics[0], along, places[0], points)
    if baseline is not None and groups <= _MAX_GROUPS:
        caption = _captioned(f"goodput compared with {baseline}, under the same seeds", places[0])
        yield Plan(caption, "plot_bars", "goodput_kbps", {"x": along, "baseline": baseline, "at": places[0]})
    for metric in metrics[1:]:
        yield _plan(results, metric, along, places[0], points)
    for at in places[1:]:
        yield _plan(results, metrics[0], along, at, points)


def _along(keys: list[str], points: list[Point]) -> str | None:
    """Returns the key for the x axis: numeric keys first, and among these the one that has the most values."""
    if not keys:
        return None
    return max(keys, key=lambda key: (_is_numeric(key, points), len({point[key] for point in points})))


def _plan(results: Results, metric: str, along: str | None, at: Point, points: list[Point]) -> Plan:
    name = metric_label(metric).name
    where = {**at, **(_first_flow(results) if metric == "transfer_s" else {})}
    arguments: dict[str, Any] = {"x": along, "at": where}
    if along is None:
        return Plan(_captioned(name, where), "plot_bars", metric, {"at": where})
    if _is_numeric(along, points):
        return Plan(_captioned(f"{name} over {key_label(along)}", where), "plot_metric", metric, arguments)
    return Plan(_captioned(f"{name} for each {key_label(along)}", where), "plot_bars", metric, arguments)


def _is_numeric(key: str, points: list[Point]) -> bool:
    return numbers_of(key, [point[key] for point in points]) is not None


def _metrics(results: Results) -> list[str]:
    """Returns goodput and the other metrics that are not always zero."""
    runs, flows = results.to_pandas("runs"), results.to_pandas("flows")
    tables = {metric: flows if metric == "transfer_s" else runs for metric in _METRICS}
    return [
        metric for metric, table in tables.items() if metric == "goodput_kbps" or table[metric].fillna(0).ne(0).any()
    ]


def _first_flow(results: Results) -> dict[str, Any]:
    """Returns the first flow that ends, if there are several flows."""
    flows = results.to_pandas("flows")
    if flows["flow"].nunique() < 2:
        return {}
    return {"flow": flows[flows["transfer_s"].notna()]["flow"].iloc[0]}


def _captioned(what: str, at: Point) -> str:
    where = ", ".join(f"{key} = {value_text(value)}" for key, value in at.items())
    text = f"{what[0].upper()}{what[1:]}"
    return f"{text}, where {where}" if where else text
