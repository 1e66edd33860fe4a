"""A scenario as a whole."""

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
from anabranch.scenario.table import Table, plain, written
from anabranch.scenario.tables import AssociationSettings, Link, Path, RunSettings, Scheme


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Scenario(Table):
    """Links between two hosts, their flows, and the runs.

    Values are kept as a scenario file has them: text with units such as `"10 Mbit/s"`, numbers where it has numbers,
    and `None` or `()` for what is left to its default. The book's chapter "Scenario files" says what each means.

    A scenario is checked when it is made, in whatever way: `ScenarioError` has everything that is wrong with it. Two
    are equal if their files say the same; `name` and `folder` do not count.

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
    """Schemes that it defines for itself."""
    links: Sequence[Link] = ()
    """Links that paths share."""
    paths: Sequence[Path]
    """Paths between the hosts; the first is the primary path of flows that do not name theirs."""
    flows: Sequence[Flow] = ()
    """Flows; without any, one bulk flow over all paths."""
    name: str = field(default="scenario", compare=False)
    """Name in messages: the file that it was read from."""
    folder: FilePath = field(default=FilePath(), compare=False)
    """Folder of the files that its flows send; an absolute path."""
    native: _native.Scenario = field(init=False, repr=False, compare=False)
    """The native object, which sweeps and runs share."""
    read_from: InitVar[_native.Scenario | None] = None
    """The native object that the tables come from. Without one they are read."""

    def __post_init__(self, read_from: _native.Scenario | None) -> None:
        Table.__post_init__(self)
        object.__setattr__(self, "folder", FilePath(os.path.abspath(self.folder)))
        native = read_from or _native.Scenario(self.to_toml(), f"{self.name} (as TOML)")
        object.__setattr__(self, "native", native)

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Scenario:
        """Reads a scenario file. Raises `ScenarioError` if it cannot be read, or with all that is wrong in it."""
        path = FilePath(file)
        name = printable(path)
        try:
            data = path.read_bytes()
        except (OSError, ValueError) as error:
            raise ScenarioError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
        return cls.parse(decoded(data, name), name=name, folder=path.parent)

    @classmethod
    def parse(cls, text: str, name: str = "scenario", folder: str | os.PathLike[str] = "") -> Scenario:
        """Reads the text of a scenario; `name` stands for the file in messages, and `folder` for the one it is in.

        Raises `ScenarioError` with all that is wrong in the text.
        """
        return cls._of(_native.Scenario(text, name), name, folder)

    @classmethod
    def from_dict(
        cls, table: Mapping[str, Any], name: str = "scenario", folder: str | os.PathLike[str] = ""
    ) -> Scenario:
        """The scenario of a dictionary with the keys of a scenario file: `{"run": {...}, "path": [{...}], ...}`.

        Raises `ScenarioError` with all that is wrong, as if it were a file.
        """
        text = tomli_w.dumps(written(plain(table, name)))
        return cls._of(_native.Scenario(text, f"{name} (as TOML)"), name, folder)

    @classmethod
    def _of(cls, native: _native.Scenario, name: str, folder: str | os.PathLike[str]) -> Scenario:
        """The scenario with the keys that were given to the native one."""
        table = native.table()
        named = [{"name": scheme, **inner} for scheme, inner in table.get("scheme", {}).items()]
        arguments = cls.arguments({**table, "scheme": named})
        return cls(**arguments, name=name, folder=FilePath(folder), read_from=native)

    def to_table(self) -> dict[str, Any]:
        """The keys that were given, as a dictionary of plain values."""
        table = {key: value for key, value in Table.to_table(self).items() if value != {}}
        if "scheme" in table:
            table["scheme"] = self._by_name(table["scheme"])
        return table

    def _by_name(self, schemes: Any) -> dict[str, Any]:
        """Definitions as a file has them, where the name is part of the header."""
        tables: dict[str, Any] = {}
        if not isinstance(schemes, list) or not all(isinstance(scheme, dict) for scheme in schemes):
            raise ScenarioError(
                f"{self.name}: `schemes` of a scenario is a list of definitions such as "
                'Scheme(name="eager", expression="cmt(trigger=2)"); those to run go to RunSettings(schemes=[...])'
            )
        for scheme in schemes:
            name = scheme["name"]
            if name in tables:
                raise ScenarioError(f"{self.name}: two schemes are called `{name}`: give each a name of its own")
            tables[name] = {key: value for key, value in scheme.items() if key != "name"}
        return tables

    def _repr_html_(self) -> str:
        """Returns HTML for notebooks: the run, the paths and the flows, with every default."""
        from anabranch.scenario.overview import as_html

        return as_html(self.name, self.resolved().to_table())

    def to_toml(self, *, resolved: bool = False) -> str:
        """The text of a file that says the same: what was given, or with `resolved` everything.

        The resolved text is canonical: scenarios that mean the same have the same one.
        """
        return self.native.to_toml() if resolved else document(self.to_table())

    def resolved(self) -> Scenario:
        """The scenario with every default in it."""
        return Scenario.parse(self.to_toml(resolved=True), self.name, self.folder)

    def with_values(self, values: Mapping[str, Any]) -> Scenario:
        """The scenario with other values, as `--set` puts them in: by dotted key, later ones over earlier ones.

        An element of a list goes by its name, by its index from 0, or by `*` for all of them. What follows from a value
        by default follows from the new one.

        >>> scenario = Scenario.parse('[run]\\nduration = "5 s"\\n[[path]]\\nrate = "1 Mbit/s"\\ndelay = "10 ms"')
        >>> scenario.with_values({"path.*.loss": 0.02, "run.seeds": 20}).paths[0].loss
        0.02

        Raises `ScenarioError` if a key matches nothing, or the scenario is wrong with these values.
        """
        given = [(key, literal(written(plain(value, key)))) for key, value in values.items()]
        return Scenario._of(self.native.with_values(given), self.name, self.folder)


def decoded(data: bytes, name: str) -> str:
    """The text of a file."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, error.start - before.rfind(b"\n")
        raise ScenarioError(f"{name}:{line}:{column}: this is not text in UTF-8: save the file as UTF-8") from error


def printable(path: FilePath) -> str:
    """A path for messages. Names of files may have bytes that are no text, and characters that break a line."""
    text = os.fsencode(path).decode(errors="replace")
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


def load(scenario: Scenario | str | os.PathLike[str]) -> Scenario:
    """A scenario as it is, or read from the file that a path leads to.

    Raises `ScenarioError`; for text in place of a path, with what to do about it.
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
