"""Plan of the runs of experiments: settings, measures, and the runs that need traces."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from anabranch.experiments.claims.claim import Claim
from anabranch.experiments.claims.quantity import At
from anabranch.experiments.measures import MEASURES
from anabranch.experiments.model import (
    DEFAULT,
    TRACED_FIGURES,
    Axis,
    Change,
    Experiment,
    Figure,
    Measure,
    Settings,
)
from anabranch.values import Value


@dataclass(frozen=True, slots=True)
class Scope:
    """Selected part of the studies.

    `seeds` replaces the number of seeds of every experiment. `claims` omits runs that no verdict depends on. `change`
    is the id of the only change to run, with the runs of the default setting that it is compared with.
    """

    quick: bool = False
    seeds: int | None = None
    variants: bool = True
    ablations: bool = True
    claims: bool = False
    change: str | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """Setting of an experiment: the default one, or one with a change.

    `schemes` are expressions by their names. The axes are applied to the scenario after `overrides`. `shortened` is
    `True` if `--quick` changed the scenario.
    """

    experiment: Experiment
    change: Change | None
    axes: tuple[Axis, ...]
    schemes: Mapping[str, str]
    seeds: tuple[int, ...]
    overrides: Settings
    draw: Mapping[str, tuple[float, float]]
    shortened: bool

    @property
    def id(self) -> str:
        """`default`, or the id of the change."""
        return self.change.id if self.change else DEFAULT

    @property
    def measure(self) -> Measure:
        """Measure of the experiment under this setting."""
        return (self.change and self.change.measure) or self.experiment.measure

    def drawn(self, seed: int) -> dict[str, Value]:
        """Returns the values drawn for a seed: for each key a number, uniformly distributed between its ends.

        The values depend on key and seed only, so all schemes, axes and variants have the same ones.
        """
        renamed = self.change.key if self.change else str
        return {
            renamed(key): round(random.Random(f"{key} {seed}").uniform(low, high), 6)
            for key, (low, high) in self.draw.items()
        }

    def axis(self, name: str) -> Axis:
        """Returns the axis of this name with the values to run."""
        return next(axis for axis in self.axes if axis.name == name)

    def cells(self, at: At | None = None) -> Iterator[tuple[int, ...]]:
        """Yields the combinations of axis values by index, with the last axis varying fastest. `at` restricts axes."""
        at = at or {}
        for cell in itertools.product(*(range(len(axis.values)) for axis in self.axes)):
            places = zip(self.axes, cell, strict=True)
            if all(axis.only(at[axis.name]).index(axis.values[i]) is not None for axis, i in places if axis.name in at):
                yield cell

    @property
    def shape(self) -> tuple[int, ...]:
        """Numbers of schemes, of values of each axis, and of seeds."""
        return (len(self.schemes), *(len(axis.values) for axis in self.axes), len(self.seeds))

    def settings_at(self, cell: tuple[int, ...], seed: int) -> dict[str, Value]:
        """Returns all overrides of the scenario in a cell."""
        settings: dict[str, Value] = {**self.overrides, **self.drawn(seed)}
        for axis, index in zip(self.axes, cell, strict=True):
            settings |= axis.settings[index]
        return settings


def settings_of(experiment: Experiment, scope: Scope) -> tuple[Setting, ...]:
    """Returns the settings of an experiment that are run, the default one first; none if it is deferred."""
    if experiment.deferred:
        return ()
    if scope.change is not None:
        return _with_change(experiment, scope)
    changes: list[Change | None] = [None]
    if not scope.quick:
        changes += experiment.variants if scope.variants else ()
        changes += experiment.readings if scope.variants and not scope.claims else ()
        changes += experiment.ablations if scope.ablations and not scope.claims else ()
    return tuple(_setting(experiment, change, scope) for change in changes)


def _with_change(experiment: Experiment, scope: Scope) -> tuple[Setting, ...]:
    """Returns the default setting with seeds and values of the only change, without figures, and that of the change.

    Returns nothing for an experiment without this change.
    """
    without = replace(experiment, figures=())
    change = next((change for change in experiment.changes if change.id == scope.change), None)
    if change is None:
        return ()
    default, changed = _setting(without, None, scope), _setting(without, change, scope)
    axes = tuple(own.only(axis.values) for own, axis in zip(default.axes, changed.axes, strict=True))
    return (replace(default, axes=axes, seeds=changed.seeds), changed)


def _setting(experiment: Experiment, change: Change | None, scope: Scope) -> Setting:
    reductions = [experiment.quick] if scope.quick else []
    settings: Settings = experiment.overrides
    for less in reductions:
        settings = {**settings, **less.overrides}
    if change:
        settings, reductions = change.applied(settings), [*reductions, change.less]
    axes = tuple(change.axis(axis) for axis in experiment.axes) if change else experiment.axes
    seeds = experiment.seeds
    for less in reductions:
        axes = tuple(axis.only(less.values.get(axis.name, axis.values)) for axis in axes)
        seeds = min(seeds, less.seeds or seeds)
    return Setting(
        experiment=experiment,
        change=change,
        axes=axes,
        schemes={**experiment.schemes, **(change.schemes if change else {})},
        seeds=tuple(range(1, (scope.seeds or seeds) + 1)),
        overrides=settings,
        draw=experiment.draw,
        shortened=scope.quick and bool(experiment.quick.overrides),
    )


def narrowed(setting: Setting, claims: Iterable[Claim]) -> Setting | None:
    """Returns a setting with the schemes and axis values that the claims read, and without figures.

    Returns `None` if the claims read none of its runs.
    """
    experiment = setting.experiment
    read = [quantity for claim in claims for quantity in claim.quantities() if quantity.experiment == experiment.id]
    named = {scheme for quantity in read for scheme in quantity.schemes}
    schemes = {name: expression for name, expression in setting.schemes.items() if name in named}
    axes = tuple(_narrowed_axis(axis, [quantity.at for quantity in read]) for axis in setting.axes)
    if not schemes or not all(axis.values for axis in axes):
        return None
    return replace(setting, experiment=replace(experiment, figures=()), schemes=schemes, axes=axes)


def _narrowed_axis(axis: Axis, read: Sequence[At]) -> Axis:
    """Returns the values of an axis that the claims read: all of them for a mean over the axis."""
    if any(axis.name not in at for at in read):
        return axis
    return axis.only(tuple(value for at in read for value in at[axis.name]))


@dataclass(frozen=True, slots=True)
class Curve:
    """Curve over time in a figure, from one traced run. `kind` is the kind of the figure."""

    kind: str
    window_s: tuple[float, float] | None = None
    bin_s: float = 1.0


Extract: TypeAlias = "Measure | Curve"
"""Data from the trace of a run: the value of a measure, or a curve."""

RunIndex: TypeAlias = "tuple[str, tuple[int, ...], int]"
"""Run of a setting: a scheme, the indices of the axis values, and a seed."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Measures to compute under one setting of an experiment.

    `tables` come from the tables of its sweep. `traced` come from traces of the named runs.
    """

    tables: frozenset[Measure]
    traced: Mapping[Extract, frozenset[RunIndex]]

    def traced_runs(self) -> list[RunIndex]:
        """Returns the runs to trace, each once, in a fixed order."""
        return sorted(frozenset[RunIndex]().union(*self.traced.values()))


def wanted(setting: Setting, claims: Iterable[Claim], changed: bool = False) -> Wanted:
    """Returns the measures of this setting that claims and figures read. Figures read the default setting only.

    If settings are `changed` as well, they are compared by the experiment's own measure, unless that needs traces.
    """
    experiment = setting.experiment
    measures = [
        (quantity.measure, quantity.schemes, quantity.at)
        for claim in claims
        for quantity in claim.quantities()
        if quantity.experiment == experiment.id
    ]
    traced: dict[Extract, set[RunIndex]] = {}
    for figure in experiment.figures if setting.change is None else ():
        if figure.kind in TRACED_FIGURES:
            traced.setdefault(curve_of(figure), set()).update(figure_runs(setting, figure))
        else:
            measures.append((figure.measure, figure.schemes, figure.at))
    if changed and not MEASURES[experiment.measure.name].traced:
        measures.append((experiment.measure, (), {}))
    if setting.measure != experiment.measure:
        measures.append((setting.measure, (), {}))
    tables = frozenset(measure for measure, _, _ in measures if not MEASURES[measure.name].traced)
    for measure, schemes, at in measures:
        if measure not in tables:
            traced.setdefault(measure, set()).update(_runs(setting, schemes, at))
    return Wanted(tables, {extract: frozenset(runs) for extract, runs in traced.items()})


def curve_of(figure: Figure) -> Curve:
    """Returns the curve of each run in a figure over time."""
    if figure.kind == "throughput-time":
        return Curve(figure.kind, None, figure.bin_s)
    return Curve(figure.kind, figure.window_s)


def figure_runs(setting: Setting, figure: Figure) -> frozenset[RunIndex]:
    """Returns the runs of a figure over time: those of one seed, or of all seeds for throughput.

    An axis that is neither restricted nor shown in panels has its first value.
    """
    at = {axis.name: axis.values[:1] for axis in setting.axes if axis.name != figure.panels} | dict(figure.at)
    seeds = setting.seeds if figure.kind == "throughput-time" else (figure.seed,)
    return frozenset(_runs(replace(setting, seeds=seeds), figure.schemes, at))


def _runs(setting: Setting, schemes: Iterable[str], at: At) -> Iterator[RunIndex]:
    yield from itertools.product(schemes, setting.cells(at), setting.seeds)
