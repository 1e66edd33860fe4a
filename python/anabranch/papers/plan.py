"""From experiments to what has to be run: settings, measures, and the cells that need traces."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from anabranch.papers.claim import Claim
from anabranch.papers.measures import MEASURES
from anabranch.papers.model import (
    DEFAULT,
    TRACED_FIGURES,
    Axis,
    Change,
    Experiment,
    Figure,
    Measure,
    Reduction,
    Settings,
    Value,
)


@dataclass(frozen=True, slots=True)
class Scope:
    """How much of the papers is reproduced. `seeds` replaces the number of seeds of every experiment."""

    quick: bool = False
    seeds: int | None = None
    variants: bool = True
    ablations: bool = True


@dataclass(frozen=True, slots=True)
class Setting:
    """One way in which an experiment is run: as the paper has it, or with a change.

    `schemes` are expressions by the paper's names. `set` is put into the scenario before what the axes vary.
    `shortened` says that `--quick` put something into it.
    """

    experiment: Experiment
    change: Change | None
    axes: tuple[Axis, ...]
    schemes: Mapping[str, str]
    seeds: tuple[int, ...]
    set: Settings
    draw: Mapping[str, tuple[float, float]]
    shortened: bool

    @property
    def id(self) -> str:
        """`default`, or the id of the change."""
        return self.change.id if self.change else DEFAULT

    def drawn(self, seed: int) -> dict[str, Value]:
        """What is drawn for a seed: for each key a number of its own, evenly distributed between its ends.

        It depends on key and seed only, so that all schemes, axes and variants meet the same.
        """
        return {
            key: round(random.Random(f"{key} {seed}").uniform(low, high), 6) for key, (low, high) in self.draw.items()
        }

    def cells(self) -> Iterator[tuple[int, ...]]:
        """Every combination of values of the axes, by index, the last axis going fastest."""
        yield from product(*(range(len(axis.values)) for axis in self.axes))

    def settings_at(self, cell: tuple[int, ...], seed: int) -> dict[str, Value]:
        """Everything that is put into the scenario in a cell."""
        settings: dict[str, Value] = {**self.set, **self.drawn(seed)}
        for axis, index in zip(self.axes, cell, strict=True):
            settings |= axis.settings[index]
        return settings


def settings_of(experiment: Experiment, scope: Scope) -> tuple[Setting, ...]:
    """The settings of an experiment that are run: the default one first; none if it is deferred."""
    if experiment.deferred:
        return ()
    found = [_setting(experiment, None, scope)]
    if not scope.quick:
        found += [_setting(experiment, change, scope) for change in experiment.variants if scope.variants]
        found += [_setting(experiment, change, scope) for change in experiment.ablations if scope.ablations]
    return tuple(found)


def _setting(experiment: Experiment, change: Change | None, scope: Scope) -> Setting:
    reductions = [experiment.quick] if scope.quick else []
    reductions += [change.less] if change else []
    return Setting(
        experiment=experiment,
        change=change,
        axes=tuple(_reduced(axis, reductions) for axis in experiment.axes),
        schemes={**experiment.schemes, **(change.schemes if change else {})},
        seeds=tuple(range(1, _seeds(experiment, reductions, scope) + 1)),
        set={**experiment.set, **{key: value for each in reductions for key, value in each.set.items()}},
        draw=experiment.draw,
        shortened=scope.quick and bool(experiment.quick.set),
    )


def _reduced(axis: Axis, reductions: Iterable[Reduction]) -> Axis:
    for reduction in reductions:
        if axis.name in reduction.values:
            axis = axis.only(reduction.values[axis.name])
    return axis


def _seeds(experiment: Experiment, reductions: Iterable[Reduction], scope: Scope) -> int:
    if scope.seeds is not None:
        return scope.seeds
    return min([experiment.seeds, *(each.seeds for each in reductions if each.seeds is not None)])


@dataclass(frozen=True, slots=True)
class Curve:
    """Something over time that a figure draws, of one traced run. `kind` is that of the figure."""

    kind: str
    window_s: tuple[float, float] | None = None
    bin_s: float = 1.0


@dataclass(frozen=True, slots=True)
class Wanted:
    """What has to be measured under one setting of an experiment.

    `tables` come from the tables of its sweep. `traced` and `curves` take traces, each in the cells that are named: a
    scheme, a value of each axis by index, and a seed.
    """

    tables: frozenset[Measure]
    traced: Mapping[Measure, frozenset[Cell]]
    curves: Mapping[Curve, frozenset[Cell]]


Cell = tuple[str, tuple[int, ...], int]


def wanted(setting: Setting, claims: Iterable[Claim]) -> Wanted:
    """What claims, of whichever experiment, and figures need of this setting; figures of the default one only."""
    experiment = setting.experiment
    own = experiment.measure
    tables: set[Measure] = set() if MEASURES[own.name].traced else {own}
    traced: dict[Measure, set[Cell]] = {}
    for claim in claims:
        for identity, quantity in claim.quantities():
            if identity != experiment.id:
                continue
            if not MEASURES[quantity.measure.name].traced:
                tables.add(quantity.measure)
                continue
            traced.setdefault(quantity.measure, set()).update(_cells(setting, quantity.schemes, quantity.at))
    curves: dict[Curve, set[Cell]] = {}
    for figure in experiment.figures if setting.change is None else ():
        if figure.kind in TRACED_FIGURES:
            curves.setdefault(curve_of(figure), set()).update(figure_cells(setting, figure))
        elif MEASURES[figure.measure.name].traced:
            traced.setdefault(figure.measure, set()).update(_cells(setting, figure.schemes, figure.at))
        else:
            tables.add(figure.measure)
    return Wanted(
        frozenset(tables),
        {measure: frozenset(cells) for measure, cells in traced.items()},
        {curve: frozenset(cells) for curve, cells in curves.items()},
    )


def curve_of(figure: Figure) -> Curve:
    """What a figure over time draws of each run."""
    if figure.kind == "throughput-time":
        return Curve(figure.kind, None, figure.bin_s)
    return Curve(figure.kind, figure.window_s)


def figure_cells(setting: Setting, figure: Figure) -> frozenset[Cell]:
    """The runs that a figure over time draws: of one seed, or for throughput the mean over all.

    Where an axis is neither narrowed down nor shown in panels, its first value is drawn.
    """
    at = dict(figure.at)
    for axis in setting.axes:
        if axis.name != figure.panels and axis.name not in at:
            at[axis.name] = axis.values[:1]
    seeds = setting.seeds if figure.kind == "throughput-time" else (figure.seed,)
    return frozenset(_cells(replace(setting, seeds=seeds), figure.schemes, at))


def _cells(setting: Setting, schemes: Iterable[str], at: Mapping[str, tuple[Value, ...]]) -> Iterator[Cell]:
    kept = [
        [
            i
            for i, value in enumerate(axis.values)
            if axis.name not in at or axis.only(at[axis.name]).index(value) is not None
        ]
        for axis in setting.axes
    ]
    yield from product(schemes, product(*kept), setting.seeds)
