"""Reader of `experiments.toml`: the axes that a study varies, and the changes that test its assumptions."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

from anabranch.errors import ExperimentError
from anabranch.experiments.fields import Fields, check_unique, hint, read_each
from anabranch.experiments.measures import MEASURES
from anabranch.experiments.model import (
    TRACED_FIGURES,
    Axis,
    Change,
    ChangeKind,
    Experiment,
    Figure,
    FigureKind,
    Measure,
    Names,
    Reduction,
    Settings,
)
from anabranch.experiments.reading.axes import read_axis
from anabranch.experiments.reading.measures import check_measure, read_at, read_measure
from anabranch.experiments.scenarios import names_in, resolved, scheme_named

_ID = re.compile(r"[a-z0-9][a-z0-9-]*")
_NEEDS_X = ("lines", "transfer-time", "regression", "table")
_NO_SCENARIO = Path()


def read_experiments(path: Path, schemes: Mapping[str, str]) -> tuple[Experiment, ...]:
    """Reads the experiments of a file. `schemes` are those of `study.toml`."""
    found = read_each(path, "experiment", lambda fields: _experiment(fields, schemes))
    check_unique((experiment.id for experiment in found), path, "the experiments")
    return found


def _experiment(fields: Fields, known: Mapping[str, str]) -> Experiment:
    identity = _identity(fields)
    names = fields.texts("schemes")
    if not names:
        raise fields.error("schemes", "is missing or empty")
    fields.check_known("schemes", names, known, "has `{}`, which `[schemes]` of study.toml lacks")
    schemes = {name: known[name] for name in names}
    settings = fields.get("set", dict, {})
    # A deferred experiment needs no scenario.
    needless = "deferred" in fields and fields.maybe("scenario", str) is None
    scenario = _NO_SCENARIO if needless else fields.file.parent / "scenarios" / fields.need("scenario", str)
    axes = fields.each("axis", read_axis)
    check_unique([axis.name for axis in axes], fields.file, f"the axes of {fields.where}")
    quick = fields.inner("quick")
    experiment = fields.fill(
        Experiment,
        id=identity,
        scenario=scenario,
        schemes=schemes,
        seeds=_seeds(fields) or 20,
        measure=read_measure(fields, Measure("goodput_kbps")),
        names=Names() if needless else names_in(_resolved(fields, "", scenario, settings)),
        overrides=settings,
        draw=_draw(fields),
        axes=axes,
        figures=(),
        quick=_reduction(quick, axes, quick.get("set", dict, {})) if quick else Reduction(seeds=3),
        variants=fields.each("variant", lambda inner: _change(inner, "variant", axes, schemes)),
        readings=fields.each("reading", lambda inner: _change(inner, "reading", axes, schemes)),
        ablations=fields.each("ablation", lambda inner: _change(inner, "ablation", axes, schemes)),
    )
    if quick:
        quick.done()
    check_unique([change.id for change in experiment.changes], fields.file, f"the changes of experiment {identity}")
    if not needless:
        check_measure(fields, experiment.measure, experiment.names)
        _check_runs(experiment, fields)
    return replace(experiment, figures=_figures(fields, experiment))


def _identity(fields: Fields) -> str:
    identity = fields.need("id", str)
    if not _ID.fullmatch(identity):
        raise fields.error("id", f"is `{identity}`; it has to be of lower-case letters, digits and `-`")
    return identity


def _seeds(fields: Fields) -> int | None:
    seeds = fields.maybe("seeds", int)
    if seeds is not None and seeds < 1:
        raise fields.error("seeds", f"is {seeds}; there has to be one at least")
    return seeds


def _draw(fields: Fields) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for key, ends in fields.get("draw", dict, {}).items():
        numbers = [float(end) for end in ends if isinstance(end, (int, float))] if isinstance(ends, list) else []
        if len(numbers) != 2 or numbers[0] >= numbers[1]:
            raise fields.error("draw", f"has `{key}`, which has to be two numbers, the smaller one first")
        found[key] = (numbers[0], numbers[1])
    return found


def _figures(fields: Fields, experiment: Experiment) -> tuple[Figure, ...]:
    default_names = (f"figure-{number}" if number > 1 else "figure" for number in itertools.count(1))
    figures = fields.each("figure", lambda inner: _figure(inner, next(default_names), experiment))
    check_unique([figure.name for figure in figures], fields.file, f"the figures of {fields.where}")
    return figures


def _figure(fields: Fields, name: str, experiment: Experiment) -> Figure:
    kind = fields.choice("kind", get_args(FigureKind))
    over_time = kind in TRACED_FIGURES
    measure = experiment.measure if over_time else read_measure(fields, experiment.measure)
    if measure != experiment.measure:
        check_measure(fields, measure, experiment.names)
    axes = {axis.name: axis for axis in experiment.axes}
    x, panels = (fields.maybe(key, str) for key in ("x", "panels"))
    fields.check_known("x", [x] if x else [], axes, "is `{}`")
    fields.check_known("panels", [panels] if panels else [], axes, "is `{}`")
    if kind in _NEEDS_X and x is None and axes:
        raise fields.error("x", f"is missing; {hint('', axes)}")
    schemes, paths = fields.texts("schemes"), fields.texts("paths")
    fields.check_known("schemes", schemes, experiment.schemes)
    fields.check_known("paths", paths, experiment.names.paths)
    definition = MEASURES[measure.name]
    return fields.fill(
        Figure,
        name=fields.get("name", str, name),
        measure=measure,
        x_label=fields.get("x_label", str, axes[x].label if x else ""),
        y_label=fields.get("y_label", str, "" if over_time else f"{definition.label} ({definition.unit})"),
        schemes=schemes or tuple(experiment.schemes),
        paths=paths or experiment.names.paths,
        at=read_at(fields, "at", experiment.axes),
        window_s=fields.pair("window_s") if over_time else None,
    )


def _reduction(fields: Fields, axes: tuple[Axis, ...], settings: Settings) -> Reduction:
    return Reduction(_seeds(fields), read_at(fields, "values", axes), settings)


def _change(fields: Fields, kind: ChangeKind, axes: tuple[Axis, ...], schemes: Mapping[str, str]) -> Change:
    identity = _identity(fields)
    settings = dict(fields.get("set", dict, {}))
    if profile := fields.maybe("profile", str):
        settings["run.profile"] = profile
    expressions = fields.get("schemes", dict, {})
    fields.check_known("schemes", expressions, schemes)
    for name, expression in expressions.items():
        if not isinstance(expression, str):
            raise fields.error("schemes", f"has `{name}`, which has to be a scheme expression in quotes")
    sets = _sets(fields, axes)
    measure = _measure(fields)
    if not settings and not expressions and not sets and measure is None:
        raise fields.error("set", "or `sets`, `schemes`, `measure` or `profile` has to be there: what is changed")
    # Only a variant answers an open question and decides claims, and only a reading answers a decided one.
    own: dict[str, Any] = {
        "unknown": fields.need("unknown", str) if kind == "variant" else "",
        "decided": fields.need("decided", str) if kind == "reading" else "",
    }
    if kind != "variant":
        own["claims"] = ()
    less = _reduction(fields, axes, settings)
    return fields.fill(
        Change, id=identity, kind=kind, schemes=expressions, measure=measure, sets=sets, less=less, renames={}, **own
    )


def _sets(fields: Fields, axes: tuple[Axis, ...]) -> dict[str, tuple[Settings, ...]]:
    """Reads the settings that replace those of axes: a table for each value of the experiment's axis."""
    known = {axis.name: axis for axis in axes}
    table: Mapping[str, Any] = fields.get("sets", dict, {})
    fields.check_known("sets", table, known, "names the axis `{}`")
    for name, sets in table.items():
        if not isinstance(sets, list) or not all(isinstance(each, dict) for each in sets):
            raise fields.error("sets", f"has `{name}`, which has to be a list of tables")
        if len(sets) != len(known[name].values):
            raise fields.error("sets", f"has {len(sets)} tables for the {len(known[name].values)} values of `{name}`")
        if any(set(each) != set(known[name].settings[0]) for each in sets):
            keys = ", ".join(known[name].settings[0])
            raise fields.error("sets", f"has `{name}` with other keys than those of the axis: {keys}")
    return {name: tuple(sets) for name, sets in table.items()}


def _measure(fields: Fields) -> Measure | None:
    """Reads the measure that replaces the experiment's own.

    The measure must not need traces, because a trace serves one measure only.
    """
    if "measure" not in fields:
        return None
    name = fields.choice("measure", [name for name, each in MEASURES.items() if not each.traced])
    return Measure(name)


def _check_runs(experiment: Experiment, fields: Fields) -> None:
    """Raises an error if the scenario is invalid with a value of an axis, a scheme or a change."""
    drawn = {key: ends[0] for key, ends in experiment.draw.items()}
    for prefix, reduction in (("", Reduction()), ("quick: ", experiment.quick)):
        base = {**experiment.overrides, **drawn, **reduction.overrides}
        _check_schemes(fields, "", _resolved(fields, prefix, experiment.scenario, base), experiment.schemes)
        for where, settings in _axis_settings(experiment):
            _resolved(fields, prefix + where, experiment.scenario, {**base, **settings})
    for change in experiment.changes:
        check_change(fields, experiment, change)


def check_change(fields: Fields, experiment: Experiment, change: Change) -> None:
    """Raises an error if the scenario of an experiment is invalid with a change."""
    drawn = {key: ends[0] for key, ends in experiment.draw.items()}
    prefix = f"{change.kind} {change.id}: "
    settings = change.applied({**experiment.overrides, **drawn})
    axes = [change.axis(axis).settings for axis in experiment.axes if change.renames or axis.name in change.sets]
    for each in itertools.chain.from_iterable(axes):
        _resolved(fields, prefix, experiment.scenario, {**settings, **each})
    _check_schemes(fields, prefix, _resolved(fields, prefix, experiment.scenario, settings), change.schemes)


def _axis_settings(experiment: Experiment) -> Iterator[tuple[str, Settings]]:
    for axis in experiment.axes:
        for value, settings in zip(axis.values, axis.settings, strict=True):
            yield f"axis {axis.name}, {value!r}: ", settings


def _resolved(fields: Fields, prefix: str, scenario: Path, settings: Settings) -> str:
    try:
        return resolved(scenario, settings)
    except ExperimentError as error:
        raise ExperimentError(f"{fields.file}: {fields.where}: {prefix}{error}") from error


def _check_schemes(fields: Fields, prefix: str, scenario: str, schemes: Mapping[str, str]) -> None:
    for name, expression in schemes.items():
        try:
            scheme_named(scenario, expression)
        except ExperimentError as error:
            raise ExperimentError(f"{fields.file}: {fields.where}: {prefix}scheme `{name}`: {error}") from error
