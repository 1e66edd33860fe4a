"""`experiments.toml`: what a paper varied, and what is changed in it to see what matters."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

from anabranch.papers.error import PaperError
from anabranch.papers.measures import MEASURES
from anabranch.papers.model import (
    TRACED_FIGURES,
    Axis,
    Change,
    Experiment,
    Figure,
    FigureKind,
    Measure,
    Reduction,
    Settings,
    Value,
)
from anabranch.papers.reading.axes import read_axis
from anabranch.papers.reading.fields import Fields, each, hint, read_toml, unique
from anabranch.papers.reading.quantities import check_measure, read_at, read_measure
from anabranch.papers.resolving import Names, names_in, resolved, schemes_named

T = TypeVar("T")

_ID = re.compile(r"[a-z0-9][a-z0-9-]*")
_NEEDS_X = ("lines", "transfer-time", "regression", "table")
_NO_SCENARIO = Path()


def read_experiments(path: Path, schemes: Mapping[str, str]) -> tuple[Experiment, ...]:
    """All experiments of a file. `schemes` are those of `paper.toml`."""
    top = Fields(read_toml(path), path, "")
    tables = top.tables("experiment")
    top.done()
    found = each(tables, path, "experiment", lambda fields: _experiment(fields, schemes))
    unique((experiment.id for experiment in found), path, "the experiments")
    return found


def _experiment(fields: Fields, known: Mapping[str, str]) -> Experiment:
    identity = _identity(fields)
    schemes = {name: known[name] for name in _scheme_names(fields, known)}
    settings = _table(fields, "set")
    scenario, names = _scenario(fields, settings)
    axes = tuple(_axes(fields))
    measure = read_measure(fields, Measure("goodput_kbps"))
    if scenario != _NO_SCENARIO:
        check_measure(fields, measure, names.paths, names.flows)
    experiment = Experiment(
        id=identity,
        title=fields.need("title", str),
        source=fields.need("source", str),
        scenario=scenario,
        schemes=schemes,
        seeds=_seeds(fields, 20),
        measure=measure,
        set=settings,
        draw=_draw(fields),
        axes=axes,
        figures=_figures(fields, axes, measure, schemes, names),
        quick=_quick(fields, axes),
        variants=_changes(fields, "variant", axes, schemes),
        ablations=_changes(fields, "ablation", axes, schemes),
        unknowns=fields.texts("unknowns"),
        note=fields.get("note", str, ""),
        deferred=fields.get("deferred", str, ""),
    )
    unique([change.id for change in experiment.changes], fields.file, f"the changes of experiment {identity}")
    if scenario != _NO_SCENARIO:
        _check_runs(experiment, fields)
    return experiment


def _identity(fields: Fields) -> str:
    identity = fields.need("id", str)
    if not _ID.fullmatch(identity):
        raise fields.error("id", f"is `{identity}`; it has to be of lower-case letters, digits and `-`")
    return identity


def _scenario(fields: Fields, settings: Settings) -> tuple[Path, Names]:
    """The file of the scenario with the names in it. An experiment that nothing here can run needs none."""
    if "deferred" in fields and "scenario" not in fields:
        fields.maybe("scenario", str)
        return _NO_SCENARIO, Names((), ())
    path = fields.file.parent / "scenarios" / fields.need("scenario", str)
    return path, names_in(_tried(fields, "", path, settings))


def _scheme_names(fields: Fields, known: Mapping[str, str]) -> tuple[str, ...]:
    names = fields.texts("schemes")
    if not names:
        raise fields.error("schemes", "is missing or empty")
    for name in names:
        if name not in known:
            raise fields.error("schemes", f"has `{name}`, which `[schemes]` of paper.toml lacks; {hint(name, known)}")
    return names


def _seeds(fields: Fields, default: int | None) -> int:
    seeds = fields.maybe("seeds", int)
    if seeds is None:
        seeds = default or 0
    elif seeds < 1:
        raise fields.error("seeds", f"is {seeds}; there has to be one at least")
    return seeds


def _table(fields: Fields, key: str) -> dict[str, Any]:
    return fields.get(key, dict, {})


def _draw(fields: Fields) -> dict[str, tuple[float, float]]:
    found: dict[str, tuple[float, float]] = {}
    for key, ends in _table(fields, "draw").items():
        numbers = [float(end) for end in ends if isinstance(end, (int, float))] if isinstance(ends, list) else []
        if len(numbers) != 2 or numbers[0] >= numbers[1]:
            raise fields.error("draw", f"has `{key}`, which has to be two numbers, the smaller one first")
        found[key] = (numbers[0], numbers[1])
    return found


def _axes(fields: Fields) -> list[Axis]:
    axes = [_read_inner(fields, "axis", table, read_axis) for table in fields.tables("axis")]
    unique([axis.name for axis in axes], fields.file, f"the axes of {fields.where}")
    return axes


def _read_inner(fields: Fields, key: str, table: dict[str, Any], read: Callable[[Fields], T]) -> T:
    inner = Fields(table, fields.file, f"{fields.where}, {key} {table.get('name', table.get('id', ''))}".rstrip())
    found = read(inner)
    inner.done()
    return found


def _figures(
    fields: Fields, axes: tuple[Axis, ...], measure: Measure, schemes: Mapping[str, str], names: Names
) -> tuple[Figure, ...]:
    tables = fields.tables("figure")
    found = []
    for number, table in enumerate(tables, start=1):
        default = "figure" if number == 1 else f"figure-{number}"
        read = partial(_figure, name=default, axes=axes, default=measure, schemes=schemes, names=names)
        found.append(_read_inner(fields, "figure", table, read))
    unique([figure.name for figure in found], fields.file, f"the figures of {fields.where}")
    return tuple(found)


def _figure(
    fields: Fields,
    name: str,
    axes: tuple[Axis, ...],
    default: Measure,
    schemes: Mapping[str, str],
    names: Names,
) -> Figure:
    kind: Any = fields.choice("kind", get_args(FigureKind))
    over_time = kind in TRACED_FIGURES
    measure = default if over_time else read_measure(fields, default)
    if measure != default:
        check_measure(fields, measure, names.paths, names.flows)
    known = {axis.name: axis for axis in axes}
    places: dict[str, str | None] = {}
    for key in ("x", "panels"):
        places[key] = fields.maybe(key, str)
        if places[key] is not None and places[key] not in known:
            raise fields.error(key, f"is `{places[key]}`; {hint(places[key] or '', known)}")
    if kind in _NEEDS_X and places["x"] is None and axes:
        raise fields.error("x", f"is missing; {hint('', known)}")
    chosen = fields.texts("schemes")
    for scheme in chosen:
        if scheme not in schemes:
            raise fields.error("schemes", f"has `{scheme}`; {hint(scheme, schemes)}")
    paths = fields.texts("paths")
    for path in paths:
        if path not in names.paths:
            raise fields.error("paths", f"has `{path}`; {hint(path, names.paths)}")
    x = places["x"]
    return Figure(
        name=fields.get("name", str, name),
        kind=kind,
        measure=measure,
        x=x,
        panels=places["panels"],
        x_label=fields.get("x_label", str, known[x].label if x else ""),
        y_label=fields.get("y_label", str, "" if over_time else _y_label(measure)),
        title=fields.get("title", str, ""),
        schemes=chosen or tuple(schemes),
        paths=paths or names.paths,
        at=read_at(fields, "at", axes),
        seed=fields.get("seed", int, 1),
        window_s=fields.pair("window_s") if over_time else None,
        bin_s=fields.get("bin_s", float, 1.0),
    )


def _y_label(measure: Measure) -> str:
    definition = MEASURES[measure.name]
    return f"{definition.label} ({definition.unit})"


def _quick(fields: Fields, axes: tuple[Axis, ...]) -> Reduction:
    inner = fields.inner("quick")
    if inner is None:
        return Reduction(seeds=3)
    reduction = _reduction(inner, axes)
    inner.done()
    return reduction


def _reduction(fields: Fields, axes: tuple[Axis, ...], settings: Settings | None = None) -> Reduction:
    return Reduction(
        seeds=_seeds(fields, None) or None,
        values=read_at(fields, "values", axes),
        set=_table(fields, "set") if settings is None else settings,
    )


def _changes(fields: Fields, kind: Any, axes: tuple[Axis, ...], schemes: Mapping[str, str]) -> tuple[Change, ...]:
    read = partial(_change, kind=kind, axes=axes, schemes=schemes)
    return tuple(_read_inner(fields, kind, table, read) for table in fields.tables(kind))


def _change(fields: Fields, kind: Any, axes: tuple[Axis, ...], schemes: Mapping[str, str]) -> Change:
    identity = _identity(fields)
    settings: dict[str, Value] = dict(_table(fields, "set"))
    profile = fields.maybe("profile", str)
    if profile is not None:
        settings["run.profile"] = profile
    expressions = _table(fields, "schemes")
    for name, expression in expressions.items():
        if name not in schemes:
            raise fields.error("schemes", f"has `{name}`; {hint(name, schemes)}")
        if not isinstance(expression, str):
            raise fields.error("schemes", f"has `{name}`, which has to be a scheme expression in quotes")
    if not settings and not expressions:
        raise fields.error("set", "or `schemes` or `profile` has to be there: what is changed")
    variant = kind == "variant"
    return Change(
        id=identity,
        kind=kind,
        about=fields.need("about", str),
        unknown=fields.need("unknown", str) if variant else "",
        schemes=expressions,
        less=_reduction(fields, axes, settings),
        claims=fields.texts("claims") if variant else (),
    )


def _check_runs(experiment: Experiment, fields: Fields) -> None:
    """Raises an error if some value of an axis, scheme or change makes no scenario that can be run."""
    reductions = [("", Reduction()), ("quick: ", experiment.quick)]
    reductions += [(f"{change.kind} {change.id}: ", change.less) for change in experiment.changes]
    for prefix, reduction in reductions:
        base = {**experiment.set, **{key: ends[0] for key, ends in experiment.draw.items()}, **reduction.set}
        text = _tried(fields, prefix, experiment.scenario, base)
        if prefix.startswith(("variant", "ablation")):
            continue
        for axis in experiment.axes:
            for value, settings in zip(axis.values, axis.settings, strict=True):
                _tried(fields, f"{prefix}axis {axis.name}, {value!r}: ", experiment.scenario, {**base, **settings})
        for name, expression in experiment.schemes.items():
            _checked_scheme(fields, "", text, name, expression)
    for change in experiment.changes:
        text = resolved(experiment.scenario, {**experiment.set, **change.less.set})
        for name, expression in change.schemes.items():
            _checked_scheme(fields, f"{change.kind} {change.id}: ", text, name, expression)


def _tried(fields: Fields, prefix: str, scenario: Path, settings: Settings) -> str:
    try:
        return resolved(scenario, settings)
    except PaperError as error:
        raise PaperError(f"{fields.file}: {fields.where}: {prefix}{error}") from error


def _checked_scheme(fields: Fields, prefix: str, text: str, name: str, expression: str) -> None:
    try:
        schemes_named(text, expression)
    except PaperError as error:
        raise PaperError(f"{fields.file}: {fields.where}: {prefix}scheme `{name}`: {error}") from error
