"""Table of a sweep's output: a mean with its interval for each point and scheme."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anabranch.estimate import rounded
from anabranch.results import Results
from anabranch.sweeps.precision import half_width, mean
from anabranch.values import Value


@dataclass(frozen=True, slots=True)
class Row:
    """One point and scheme: the mean of a figure over `n` seeds.

    `half_width` is that of the 95 % confidence interval. It is `None` for a single sample, and for equal samples, which
    have no spread.
    """

    point: tuple[Value, ...]
    scheme: str
    n: int
    mean: float
    half_width: float | None

    @property
    def in_words(self) -> str:
        """`1603 ± 132`, or the reason why there is no interval."""
        if self.half_width is not None:
            places = min(max(0, 1 - math.floor(math.log10(self.half_width))), 6)
            return f"{rounded(self.mean, places)} ± {rounded(self.half_width, places)}"
        return f"{rounded(self.mean, 1)} ({'n = 1' if self.n == 1 else 'deterministic'})"


def summarise(results: Results, metric: str = "goodput_kbps") -> list[Row]:
    """Returns a row for each point and scheme, in the order of the results."""
    columns = [results.runs[name].to_pylist() for name in (*results.over, "scheme", metric)]
    samples: dict[tuple[Value, ...], list[float]] = {}
    for *group, figure in zip(*columns, strict=True):
        if figure is not None:
            samples.setdefault(tuple(group), []).append(figure)
    return [_row(group, figures) for group, figures in samples.items()]


def _row(group: tuple[Value, ...], figures: Sequence[float]) -> Row:
    spread = any(figure != figures[0] for figure in figures)
    interval = half_width(figures) if spread else None
    return Row(group[:-1], str(group[-1]), len(figures), mean(figures), interval)


def as_table(header: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[bool]) -> Iterator[str]:
    """Yields the lines of a table with fitting columns, some of them aligned on the right."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for at, row in enumerate([header, *rows]):
        cells = [
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(row, widths, right, strict=True)
        ]
        yield "  ".join(cells).rstrip()
        if at == 0:
            yield "─" * (sum(widths) + 2 * (len(widths) - 1))
