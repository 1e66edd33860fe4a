"""Grid of a sweep: points, schemes and seeds, all checked before the first run."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from anabranch import _native
from anabranch.errors import AnabranchError, ScenarioError, SchemeError
from anabranch.policy.python_scheme import PythonScheme
from anabranch.sweeps.axis import Axis, in_words
from anabranch.sweeps.faults import Faults
from anabranch.sweeps.files import Files
from anabranch.sweeps.key import CellKey
from anabranch.sweeps.scenario_source import ScenarioSource
from anabranch.values import Value, literal
from anabranch.version import Engine

# Runs get scheme and seed as arguments, so that texts of scenarios contain neither.
_ONE_RUN = [("run.schemes", '["cmt"]'), ("run.seeds", "1")]


@dataclass(frozen=True, slots=True)
class Point:
    """One choice of a value for each swept key, with its canonical scenario.

    `files` has the SHA-256 of each file that a flow sends, by its path in the scenario. `native` is the parsed
    scenario, if it has been parsed.
    """

    values: tuple[Value, ...]
    scenario: str
    files: Mapping[str, str]
    native: _native.Scenario | None = None

    @property
    def makes_content(self) -> bool:
        """Returns `True` if a flow sends content that depends on the seed."""
        return self.native is not None and self.native.makes_content


@dataclass(frozen=True, slots=True)
class Cell:
    """Point with a scheme: runs that differ in their seeds only. `label` is the name of the scheme in results.

    `scheme` is the base of a scheme in Python. Its runs have an `unfinished_key` too, from the readable part of the
    scheme. If the runs are not cacheable, they are stored under that key until the sweep is complete.
    """

    point: int
    scheme: str
    label: str
    key: CellKey
    python_scheme: PythonScheme | None = None
    unfinished_key: CellKey | None = None
    prepared: _native.Prepared | None = None

    @property
    def is_cacheable(self) -> bool:
        """Returns `True` if later sweeps may use its runs: the key has all that they depend on."""
        return self.python_scheme is None or self.python_scheme.cache_permission.is_allowed


@dataclass(frozen=True, slots=True)
class Grid:
    """Runs of a sweep in the order of point, scheme and seed. The position in this order identifies a run."""

    given: ScenarioSource
    overrides: tuple[tuple[str, Value], ...]
    axes: tuple[Axis, ...]
    points: tuple[Point, ...]
    cells: tuple[Cell, ...]
    seeds: tuple[int, ...]
    files: Files

    @property
    def keys(self) -> list[str]:
        """Swept keys, in order."""
        return [key for axis in self.axes for key in axis.keys]

    @property
    def schemes(self) -> list[str]:
        """Names of the schemes in results, in order."""
        return list(dict.fromkeys(cell.label for cell in self.cells))

    @property
    def python_schemes(self) -> dict[str, PythonScheme]:
        """Schemes in Python by their names."""
        return {cell.label: cell.python_scheme for cell in self.cells if cell.python_scheme}

    @property
    def over(self) -> dict[str, list[Value]]:
        """Values of each swept key, in order."""
        return {key: [step[at] for step in axis.steps] for axis in self.axes for at, key in enumerate(axis.keys)}

    def __len__(self) -> int:
        return len(self.cells) * len(self.seeds)

    def cell_of(self, position: int) -> Cell:
        """Returns the cell of the run at this position."""
        return self.cells[position // len(self.seeds)]

    def seed_of(self, position: int) -> int:
        """Returns the seed of the run at this position."""
        return self.seeds[position % len(self.seeds)]

    def key_of(self, position: int) -> str:
        """Returns the key of the run at this position."""
        return self.cell_of(position).key.of(self.seed_of(position))

    def prepare(self, cell: Cell) -> _native.Prepared:
        """Returns the cell in the form of the native module."""
        if cell.prepared is not None:
            return cell.prepared
        scenario = self.points[cell.point].scenario
        own = cell.python_scheme.native() if cell.python_scheme else None
        return _native.Prepared(scenario, cell.scheme, self.given.folder, self.given.file, own)

    def in_words(self, cell: Cell) -> str:
        """Returns a description of the cell for messages."""
        return f"{in_words(self.keys, self.points[cell.point].values)}, scheme {cell.label}"


def make_grid(
    given: ScenarioSource,
    axes: Sequence[Axis],
    overrides: Mapping[str, Value],
    schemes: Sequence[str | PythonScheme] | None,
    seeds: Sequence[int] | None,
    engine: Engine,
) -> Grid:
    """Checks every point with every scheme. `schemes` and `seeds` are those of the scenario if not given.

    Raises `SweepError` with all errors of the grid.
    """
    maker = _Points(given, axes, overrides)
    points = maker.checked()
    run = maker.first_scenario()
    cells = _Cells(given, points, [key for axis in axes for key in axis.keys], engine.fingerprint)
    return Grid(
        given=given,
        overrides=tuple(overrides.items()),
        axes=tuple(axes),
        points=points,
        cells=cells.checked(schemes, run.schemes),
        seeds=tuple(seeds if seeds is not None else run.seeds),
        files=maker.files,
    )


def _as_literals(overrides: Iterable[tuple[str, Value]]) -> list[tuple[str, str]]:
    return [(key, literal(value)) for key, value in overrides]


def _point_values(axes: Sequence[Axis], steps: Sequence[tuple[Value, ...]]) -> list[tuple[str, Value]]:
    pairs = [zip(axis.keys, step, strict=True) for axis, step in zip(axes, steps, strict=True)]
    return list(itertools.chain.from_iterable(pairs))


class _Points:
    """Creates and checks the points."""

    def __init__(self, given: ScenarioSource, axes: Sequence[Axis], overrides: Mapping[str, Value]) -> None:
        self._source = given
        self._axes = axes
        self._overrides = overrides
        self._faults = Faults(given.file)
        try:
            self._text = _native.ScenarioText(given.text, given.file)
        except ScenarioError as error:
            self._faults.add(str(error))
        self._faults.raise_if_any()
        self.files = Files(given.folder)

    def first_scenario(self) -> _native.Scenario:
        """Returns the scenario of the first point, with its own schemes and seeds."""
        return self._text.read(_as_literals(self._values([axis.steps[0] for axis in self._axes])))

    def checked(self) -> tuple[Point, ...]:
        # Each value is checked alone first, since a thousand points would repeat the same few faults.
        first = [axis.steps[0] for axis in self._axes]
        self._resolve(first)
        for at, axis in enumerate(self._axes):
            for step in axis.steps[1:]:
                self._resolve([*first[:at], step, *first[at + 1 :]])
        self._faults.raise_if_any()
        points = [self._point(steps) for steps in itertools.product(*(axis.steps for axis in self._axes))]
        self._check_duplicates([point for point in points if point])
        self._faults.raise_if_any()
        return tuple(point for point in points if point)

    def _values(self, steps: Sequence[tuple[Value, ...]]) -> list[tuple[str, Value]]:
        return [*self._overrides.items(), *_point_values(self._axes, steps)]

    def _resolve(self, steps: Sequence[tuple[Value, ...]]) -> _native.Scenario | None:
        try:
            return self._text.read([*_as_literals(self._values(steps)), *_ONE_RUN])
        except ScenarioError as error:
            self._faults.add(str(error))
            return None

    def _point(self, steps: Sequence[tuple[Value, ...]]) -> Point | None:
        scenario = self._resolve(steps)
        if scenario is None:
            return None
        files = {path: self._digest(path, key) for key, path in scenario.files}
        return Point(tuple(itertools.chain.from_iterable(steps)), scenario.to_toml(), files, scenario)

    def _digest(self, path: str, key: str) -> str:
        try:
            return self.files.digest(path)
        except OSError as error:
            self._faults.add(f"`{key}`: {self._source.folder / path}: {error.strerror}")
            return ""

    def _check_duplicates(self, points: Sequence[Point]) -> None:
        keys = [key for axis in self._axes for key in axis.keys]
        seen: dict[str, Point] = {}
        for point in points:
            first = seen.setdefault(point.scenario, point)
            if first is not point:
                these = f"{in_words(keys, first.values)} and {in_words(keys, point.values)}"
                self._faults.add(f"{these}: are the same scenario: omit one of them")


class _Cells:
    """Creates and checks the cells: each point with each scheme."""

    def __init__(self, given: ScenarioSource, points: Sequence[Point], keys: Sequence[str], fingerprint: str) -> None:
        self._source = given
        self._points = points
        self._keys = keys
        self._fingerprint = fingerprint
        self._faults = Faults(given.file)

    def checked(self, given: Sequence[str | PythonScheme] | None, own: Sequence[str]) -> tuple[Cell, ...]:
        schemes = self._expanded(own, "run.schemes") if given is None else self._expanded(given, "scheme", unique=True)
        self._faults.raise_if_any()
        cells = [cell for at in range(len(self._points)) for cell in self._of_point(at, schemes, given is None)]
        self._faults.raise_if_any()
        return tuple(cells)

    def _expanded(
        self, given: Sequence[str | PythonScheme], key: str, *, unique: bool = False
    ) -> list[str | PythonScheme]:
        """Returns the full expression of each scheme, once. If `unique` is set, a repeated scheme is an error."""
        schemes: dict[str, str | PythonScheme] = {}
        texts: dict[str, str] = {}
        for scheme in given:
            listed = [scheme] if isinstance(scheme, PythonScheme) else self._listed(scheme, key)
            for each in listed:
                name, text = (each.name, each.name) if isinstance(each, PythonScheme) else (each, str(scheme))
                if unique and name in schemes:
                    self._faults.add(f"`{key}`: has {name} twice, in `{texts[name]}` and `{text}`")
                schemes.setdefault(name, each)
                texts.setdefault(name, text)
        return list(schemes.values())

    def _listed(self, text: str, key: str) -> list[str]:
        try:
            return self._scenario(0).schemes_of(text)
        except SchemeError as error:
            self._faults.add(f"`{key}`: {error}")
            return []

    def _of_point(self, at: int, schemes: Sequence[str | PythonScheme], optional: bool) -> list[Cell]:
        cells: dict[str, Cell] = {}
        for scheme in schemes:
            cell = self._cell(at, scheme)
            if cell is None:
                continue
            name = scheme.name if isinstance(scheme, PythonScheme) else scheme
            if cell.label != name and not optional:
                self._faults.add(f"`scheme`: has no effect, since every flow has its own ({self._place(at)})")
            cells.setdefault(cell.label, cell)
        return list(cells.values())

    def _cell(self, at: int, scheme: str | PythonScheme) -> Cell | None:
        point = self._points[at]
        own = scheme if isinstance(scheme, PythonScheme) else None
        text = own.base if own else str(scheme)
        try:
            prepared = _native.Prepared(
                self._scenario(at), text, self._source.folder, self._source.file, own.native() if own else None
            )
        except AnabranchError as error:
            self._faults.add(f"{self._place(at)}, scheme {own.name if own else scheme}: {error}")
            return None
        label = prepared.scheme
        if own is None:
            return Cell(at, text, label, self._key(point, label), prepared=prepared)
        identity = own.cache_permission.identity
        known = f"{label}\n{text}\n{identity.digest}"
        # A key of an incomplete identity is unique, so that no later sweep finds the run.
        key = self._key(point, known if identity.is_complete else f"{known}\n{secrets.token_hex()}")
        return Cell(at, text, label, key, own, self._key(point, f"{known}\nunfinished"))

    def _scenario(self, at: int) -> _native.Scenario:
        point = self._points[at]
        return point.native or _native.Scenario(point.scenario, self._source.file)

    def _key(self, point: Point, scheme: str) -> CellKey:
        return CellKey(fingerprint=self._fingerprint, scenario=point.scenario, scheme=scheme, files=point.files)

    def _place(self, at: int) -> str:
        return in_words(self._keys, self._points[at].values)
