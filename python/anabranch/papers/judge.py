"""From claims and samples to verdicts."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import numpy as np

from anabranch.papers.claim import (
    Claim,
    Compare,
    Deferred,
    GainTrend,
    Number,
    Order,
    Quantity,
    Regression,
    Statement,
    Trend,
)
from anabranch.papers.measures import MEASURES
from anabranch.papers.model import Measure, Value
from anabranch.papers.samples import Grid, LeftOutError
from anabranch.papers.verdicts import rules
from anabranch.papers.verdicts.estimates import Sample
from anabranch.papers.verdicts.finding import Direction, Finding, Judgement, Part, Verdict

Grids: TypeAlias = Callable[[str, Measure], Grid]
"""The samples of a measure in an experiment, by its id."""

At: TypeAlias = Mapping[str, "tuple[Value, ...]"]

_SEVERITY = (Verdict.DIFFERS, Verdict.CANNOT_TELL, Verdict.DIRECTION_ONLY, Verdict.REPRODUCED)
"""A claim of several parts is as good as the worst of them."""


def judge(claim: Claim, grids: Grids) -> Judgement:
    """The verdict on a claim under one setting."""
    if isinstance(claim.statement, Deferred):
        return Judgement(Verdict.OPEN, detail=claim.statement.reason)
    try:
        parts = tuple(_parts(claim.statement, _Samples(claim.experiment, grids)))
    except LeftOutError as error:
        parts = ()
        detail = str(error)
    else:
        detail = ""
    if claim.contradictory:
        return Judgement(Verdict.CONTRADICTORY, parts, detail)
    if not parts:
        return Judgement(Verdict.CANNOT_TELL, detail=detail)
    verdicts = [part.finding.verdict for part in parts]
    return Judgement(min(verdicts, key=_SEVERITY.index), parts)


def decided(default: Judgement, variants: Mapping[str, Judgement]) -> tuple[Verdict, tuple[str, ...]]:
    """The verdict in view of variants, and those variants on which it depends.

    What holds with one plausible value and not with another cannot be told. A variant that cannot tell changes nothing,
    nor does one in which only the size differs.
    """
    if default.verdict in (Verdict.CONTRADICTORY, Verdict.OPEN):
        return default.verdict, ()
    told = {name: variant.direction for name, variant in variants.items() if _tells(variant)}
    seen = set(told.values()) | ({default.direction} if _tells(default) else set())
    if len(seen) < 2:
        return default.verdict, ()
    other = tuple(name for name, direction in told.items() if direction is not default.direction)
    return Verdict.CANNOT_TELL, other


def _tells(judgement: Judgement) -> bool:
    return judgement.direction is not Direction.UNCLEAR


class _Samples:
    """Samples of quantities, paired by seed."""

    def __init__(self, experiment: str, grids: Grids) -> None:
        self._experiment = experiment
        self._grids = grids

    def grid(self, quantity: Quantity, experiment: str = "") -> Grid:
        return self._grids(experiment or quantity.experiment or self._experiment, quantity.measure)

    def pair(self, a: Quantity, b: Quantity, schemes: tuple[str, str], at: At) -> tuple[Sample, Sample]:
        """Both quantities under the seeds that they share. `at` narrows both down further."""
        grids = self.grid(a), self.grid(b)
        samples = [
            grid.sample(scheme, {**quantity.at, **at})
            for grid, scheme, quantity in zip(grids, schemes, (a, b), strict=True)
        ]
        first, second = shared([(grid.seeds, sample) for grid, sample in zip(grids, samples, strict=True)])
        return first, second


def shared(samples: Sequence[tuple[tuple[int, ...], Sample]]) -> list[Sample]:
    """Samples, each with its seeds, cut down to the seeds that all of them have."""
    seeds = [seed for seed in samples[0][0] if all(seed in own for own, _ in samples)]
    return [sample[..., [own.index(seed) for seed in seeds]] for own, sample in samples]


def _parts(statement: Statement, samples: _Samples) -> Iterator[Part]:
    if isinstance(statement, Compare):
        yield from _compared(statement, samples)
    elif isinstance(statement, Number):
        for scheme in statement.a.schemes:
            yield Part(_label(statement.a, scheme), _number(statement, scheme, samples))
    elif isinstance(statement, Trend):
        for scheme in statement.a.schemes:
            yield Part(_label(statement.a, scheme), _trend(statement, scheme, samples))
    elif isinstance(statement, Order):
        yield Part("", _order(statement, samples))
    elif isinstance(statement, GainTrend):
        yield Part("", _gain_trend(statement, samples))
    elif isinstance(statement, Regression):
        for scheme in statement.a.schemes:
            yield Part(_label(statement.a, scheme), _regression(statement, scheme, samples))


def _label(quantity: Quantity, scheme: str) -> str:
    return scheme if len(quantity.schemes) > 1 else ""


def _compared(statement: Compare, samples: _Samples) -> Iterator[Part]:
    a, b = statement.a, statement.b
    if statement.each:
        pairs = [(scheme, scheme) for scheme in a.schemes]
    else:
        pairs = list(itertools.product(a.schemes, b.schemes))
    for first, second in pairs:
        label = first if statement.each else f"{first} to {second}"
        finding = _in_cells(
            samples.grid(a),
            a.at,
            statement.at_each,
            statement.share,
            partial(_compare, statement, samples, (first, second)),
        )
        yield Part(label if len(pairs) > 1 else "", finding)


def _compare(statement: Compare, samples: _Samples, schemes: tuple[str, str], at: At, family: int) -> Finding:
    a, b = samples.pair(statement.a, statement.b, schemes, at)
    # Where it is made in several cells, its size is that of their average.
    percent = statement.percent if family == 1 else None
    return rules.compare(
        a, b, statement.relation, percent, statement.convention, statement.within_percent, family=family
    )


def _in_cells(grid: Grid, at: At, axes: tuple[str, ...], share: float, check: Callable[[At, int], Finding]) -> Finding:
    """What `check` finds on average, or, if the claim is made at each value of some axes, in their cells together."""
    average = check({}, 1)
    if not axes:
        return average
    values = [grid.values_of(axis, at) for axis in axes]
    cells = [dict(zip(axes, [(value,) for value in cell], strict=True)) for cell in itertools.product(*values)]
    if not cells:
        raise LeftOutError(f"all of {', '.join(axes)} was left out")
    return rules.cells([check(cell, len(cells)) for cell in cells], average, share)


def _number(statement: Number, scheme: str, samples: _Samples) -> Finding:
    grid = samples.grid(statement.a)
    grid.check_whole(statement.a.at)
    if grid.shortened and MEASURES[statement.a.measure.name].grows:
        raise LeftOutError("runs were too short to be compared with the paper's figure")
    sample = grid.sample(scheme, statement.a.at)
    return rules.number(sample, statement.low, statement.high, statement.unit, statement.ci95, statement.within_percent)


def _trend(statement: Trend, scheme: str, samples: _Samples) -> Finding:
    grid, at = samples.grid(statement.a), statement.a.at
    values = grid.values_of(statement.axis, at)
    if len(values) < 2:
        raise LeftOutError(f"all but one value of {statement.axis} was left out")
    positions = grid.positions_of(statement.axis, values)

    def check(cell: At, _family: int) -> Finding:
        curve = grid.curve(scheme, statement.axis, {**at, **cell})
        if statement.direction == "flat":
            return rules.flat(curve, statement.within_percent)
        return rules.trend(curve, positions, statement.direction)

    return _in_cells(grid, at, statement.at_each, statement.share, check)


def _order(statement: Order, samples: _Samples) -> Finding:
    grid, at, schemes = samples.grid(statement.a), statement.a.at, statement.a.schemes

    def check(cell: At, family: int) -> Finding:
        each = [grid.sample(scheme, {**at, **cell}) for scheme in schemes]
        pairs = [rules.compare(high, low, "higher", family=family) for high, low in itertools.pairwise(each)]
        return rules.order(pairs, rules.compare(each[0], each[-1], "higher", family=family))

    return _in_cells(grid, at, statement.at_each, statement.share, check)


def _gain_trend(statement: GainTrend, samples: _Samples) -> Finding:
    sides = (statement.a, statement.b)
    taken: list[tuple[tuple[int, ...], Sample]] = []
    for side, point in itertools.product(sides, statement.points):
        grid = samples.grid(side, point.experiment)
        taken.append((grid.seeds, grid.sample(side.schemes[0], {**side.at, **point.at})))
    aligned = shared(taken)
    half = len(statement.points)
    a, b = np.stack(aligned[:half]), np.stack(aligned[half:])
    return rules.gain_trend(a, b, _positions(statement, samples), statement.direction, statement.convention)


def _positions(statement: GainTrend, samples: _Samples) -> list[float]:
    """Where the points stand, if they are values of one axis; in a row if they are not."""
    row = [float(index) for index in range(len(statement.points))]
    names = {tuple(point.at) for point in statement.points}
    if len(names) > 1 or any(point.experiment or len(point.at) != 1 for point in statement.points):
        return row
    ((axis,),) = names
    values = [value for point in statement.points for value in point.at[axis]]
    if len(values) != len(row):
        return row
    own = samples.grid(statement.a).axes
    found = [next(each for each in own if each.name == axis).index(value) for value in values]
    positions = next(each for each in own if each.name == axis).positions
    return [positions[index] for index in found if index is not None]


def _regression(statement: Regression, scheme: str, samples: _Samples) -> Finding:
    grid, at = samples.grid(statement.a), statement.a.at
    grid.check_whole(at)
    values = grid.values_of(statement.axis, at)
    return rules.regression(
        grid.curve(scheme, statement.axis, at),
        grid.positions_of(statement.axis, values),
        statement.statistic,
        statement.low,
        statement.high,
        statement.unit,
        statement.within_percent,
    )
