"""Scenario with all of its tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from pathlib import Path as FilePath
from typing import Any, ClassVar

import tomli_w

from anabranch import _native
from anabranch._native import ScenarioError
from anabranch.scenario.flow import Flow
from anabranch.scenario.layout import document, literal
from anabranch.scenario.link_tables import Link, Path
from anabranch.scenario.table import Table, plain, written
from anabranch.scenario.tables import AssociationSettings, RunSettings, Scheme


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Scenario(Table):
    """Links between two hosts, their flows, and the runs.

    Values are those of a scenario file: text with units such as `"10 Mbit/s"`, numbers, and `None` or `()` for omitted
    keys. The book's chapter "Scenario files" defines each key.

    The constructor and all other methods that return a scenario check it, and raise `ScenarioError` with all errors.
    Two scenarios are equal if their files have the same values; `name` and `folder` do not count.

    >>> two = Scenario(
    ...     run=RunSettings(duration="5 s", schemes=["cmt"]),
    ...     paths=[Path(rate="10 Mbit/s", delay="45 ms", loss=0.01), Path(rate="2 Mbit/s", delay="90 ms")],
    ... )
    >>> two.with_values({"path.path-2.delay": "300 ms"}).paths[1].delay
    '300 ms'
    """

    KEYS: ClassVar[Mapping[str, str]] = {"schemes": "scheme", "links": "link", "paths": "path", "flows": "flow"}
    INNER: ClassVar[Mapping[str, type[Table]]] = {
        "run": RunSettings,
        "association": AssociationSettings,
        "schemes": Scheme,
        "links": Link,
        "paths": Path,
        "flows": Flow,
    }

    run: RunSettings
    """Duration, repetitions and schemes."""
    association: AssociationSettings = field(default_factory=AssociationSettings)
    """Settings of every association."""
    schemes: Sequence[Scheme] = ()
    """Named schemes of this scenario."""
    links: Sequence[Link] = ()
    """Links that paths share."""
    paths: Sequence[Path]
    """Paths between the hosts. The first is the primary path of flows without `paths`."""
    flows: Sequence[Flow] = ()
    """Flows; the default is one bulk flow over all paths."""
    name: str = field(default="scenario", compare=False)
    """Name in messages, such as that of its file."""
    folder: FilePath = field(default=FilePath(), compare=False)
    """Absolute path of the folder with the files that its flows send."""
    native: _native.Scenario = field(init=False, repr=False, compare=False)
    """Native object, which sweeps and runs share."""
    read_from: InitVar[_native.Scenario | None] = None
    """Native object with the same values as the tables. The default parses the tables."""

    def __post_init__(self, read_from: _native.Scenario | None) -> None:
        Table.__post_init__(self)
        object.__setattr__(self, "folder", FilePath(os.path.abspath(self.folder)))
        native = read_from or _native.Scenario(self.to_toml(), f"{self.name} (as TOML)")
        object.__setattr__(self, "native", native)

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Scenario:
        """Reads a scenario file. Raises `ScenarioError` if it cannot be read, or with all of its errors."""
        path = FilePath(file)
        name = printable(path)
        try:
            data = path.read_bytes()
        except (OSError, ValueError) as error:
            raise ScenarioError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
        return cls.parse(decoded(data, name), name=name, folder=path.parent)

    @classmethod
    def parse(cls, text: str, name: str = "scenario", folder: str | os.PathLike[str] = "") -> Scenario:
        """Parses the text of a scenario. `name` is its name in messages, and `folder` that of files that flows send.

        Raises `ScenarioError` with all errors.
        """
        return cls._of(_native.Scenario(text, name), name, folder)

    @classmethod
    def from_dict(
        cls, table: Mapping[str, Any], name: str = "scenario", folder: str | os.PathLike[str] = ""
    ) -> Scenario:
        """Reads a dictionary with the keys of a scenario file: `{"run": {...}, "path": [{...}], ...}`.

        Raises `ScenarioError` with all errors, as `read` does.
        """
        text = tomli_w.dumps(written(plain(table, name)))
        return cls._of(_native.Scenario(text, f"{name} (as TOML)"), name, folder)

    @classmethod
    def _of(cls, native: _native.Scenario, name: str, folder: str | os.PathLike[str]) -> Scenario:
        """Returns the scenario with the given keys of a native one."""
        table = native.table()
        named = [{"name": scheme, **inner} for scheme, inner in table.get("scheme", {}).items()]
        arguments = cls.arguments({**table, "scheme": named})
        return cls(**arguments, name=name, folder=FilePath(folder), read_from=native)

    def to_table(self) -> dict[str, Any]:
        """Returns the given keys as a dictionary of plain values."""
        table = {key: value for key, value in Table.to_table(self).items() if value != {}}
        if "scheme" in table:
            table["scheme"] = self._by_name(table["scheme"])
        return table

    def _by_name(self, schemes: Any) -> dict[str, Any]:
        """Returns definitions of schemes by name, which is part of the header in a file."""
        tables: dict[str, Any] = {}
        if not isinstance(schemes, list) or not all(isinstance(scheme, dict) for scheme in schemes):
            raise ScenarioError(
                f"{self.name}: `schemes` of a scenario is a list of definitions such as "
                'Scheme(name="eager", expression="cmt(trigger=2)"); those to run go to RunSettings(schemes=[...])'
            )
        for scheme in schemes:
            name = scheme["name"]
            if name in tables:
                raise ScenarioError(f"{self.name}: two schemes are called `{name}`: give each another name")
            tables[name] = {key: value for key, value in scheme.items() if key != "name"}
        return tables

    def _repr_html_(self) -> str:
        """Returns HTML for notebooks: the run, the paths and the flows, with every default."""
        from anabranch.scenario.overview import as_html

        return as_html(self.name, self.resolved().to_table())

    def to_toml(self, *, resolved: bool = False) -> str:
        """Returns the text of a scenario file with the given keys, or with all of them if `resolved`.

        The resolved text is canonical: scenarios with equal values have equal texts.
        """
        return self.native.to_toml() if resolved else document(self.to_table())

    def resolved(self) -> Scenario:
        """Returns the scenario with every default in it."""
        return Scenario.parse(self.to_toml(resolved=True), self.name, self.folder)

    def with_values(self, values: Mapping[str, Any]) -> Scenario:
        """Returns the scenario with other values, by dotted key as with `--set`. Later values replace earlier ones.

        The key of a list's element has its name, its index from 0, or `*` for all elements. Defaults that follow from a
        value follow from the new one.

        >>> scenario = Scenario.parse('[run]\\nduration = "5 s"\\n[[path]]\\nrate = "1 Mbit/s"\\ndelay = "10 ms"')
        >>> scenario.with_values({"path.*.loss": 0.02, "run.seeds": 20}).paths[0].loss
        0.02

        Raises `ScenarioError` if a key matches nothing, or the scenario is invalid with these values.
        """
        given = [(key, literal(written(plain(value, key)))) for key, value in values.items()]
        return Scenario._of(self.native.with_values(given), self.name, self.folder)


def decoded(data: bytes, name: str) -> str:
    """Returns the text of a file. Raises `ScenarioError` with the place if it is not in UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise ScenarioError(f"{name}:{line}:{column}: this is not text in UTF-8: save the file as UTF-8") from error


def printable(path: FilePath) -> str:
    """Returns a path for messages. File names may have bytes that are no text, and characters that break a line."""
    text = os.fsencode(path).decode(errors="replace")
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def load(scenario: Scenario | str | os.PathLike[str]) -> Scenario:
    """Returns a scenario, or reads it from the file of a path.

    Raises `ScenarioError`. If the text of a scenario was given in place of a path, the error names the remedy.
    """
    if isinstance(scenario, Scenario):
        return scenario
    if isinstance(scenario, str) and "\n" in scenario:
        raise ScenarioError(
            "expected the path of a scenario file, found text of several lines: use Scenario.parse(text)"
        )
    if isinstance(scenario, (str, os.PathLike)):
        return Scenario.read(scenario)
    found = type(scenario).__name__
    raise ScenarioError(
        f"expected a Scenario or the path of a scenario file, found a {found}: see also Scenario.from_dict"
    )
