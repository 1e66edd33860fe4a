"""A scenario as a whole."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path as FilePath
from typing import Any, ClassVar

import tomli
import tomli_w

from anabranch import _native
from anabranch._native import ScenarioError
from anabranch.scenario.flow import Flow
from anabranch.scenario.link import Link, Path
from anabranch.scenario.settings import Association, RunSettings, Scheme
from anabranch.scenario.table import Table, plain, written
from anabranch.scenario.values import literal, put


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Scenario(Table):
    """What lies between two hosts, what they send, and how often it is run.

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
        "association": Association,
        "schemes": Scheme,
        "links": Link,
        "paths": Path,
        "flows": Flow,
    }

    run: RunSettings
    """How long, how often and with which schemes."""
    association: Association = field(default_factory=Association)
    """What holds for every association."""
    schemes: Sequence[Scheme] = ()
    """Schemes that it defines for itself."""
    links: Sequence[Link] = ()
    """Links that paths share."""
    paths: Sequence[Path]
    """Paths between the hosts; the first is the primary path of flows that do not name theirs."""
    flows: Sequence[Flow] = ()
    """What is sent; without any, one bulk flow over all paths."""
    name: str = field(default="scenario", compare=False)
    """What messages call it: the file that it was read from."""
    folder: FilePath = field(default=FilePath(), compare=False)
    """Where files that its flows send are looked for; an absolute path."""
    _resolved: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        Table.__post_init__(self)
        object.__setattr__(self, "folder", FilePath(os.path.abspath(self.folder)))
        object.__setattr__(self, "_resolved", _native.resolve(self.to_toml(), self.name))

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Scenario:
        """Reads a scenario file. Raises `ScenarioError` if it cannot be read, or with all that is wrong in it."""
        name = os.fspath(file)
        try:
            data = FilePath(file).read_bytes()
        except (OSError, ValueError) as error:
            raise ScenarioError(f"{name}: cannot be read: {getattr(error, 'strerror', None) or error}") from error
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            before = data[: error.start]
            line, column = before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1
            raise ScenarioError(f"{name}:{line}:{column}: this is not text in UTF-8: save the file as UTF-8") from error
        return cls.parse(text, name=name, folder=FilePath(file).parent)

    @classmethod
    def parse(cls, text: str, name: str = "scenario", folder: str | os.PathLike[str] = "") -> Scenario:
        """Reads the text of a scenario; `name` stands for the file in messages.

        Raises `ScenarioError` with all that is wrong in the text.
        """
        _native.resolve(text, name)
        # The native reader skips a byte order mark; this one does not.
        table = tomli.loads(text.removeprefix("\ufeff"))
        return cls._of(table, name, folder)

    @classmethod
    def from_dict(
        cls, table: Mapping[str, Any], name: str = "scenario", folder: str | os.PathLike[str] = ""
    ) -> Scenario:
        """The scenario of a dictionary that has the keys of a scenario file: `{"run": {...}, "path": [{...}], ...}`.

        Raises `ScenarioError` with all that is wrong, as if it were a file.
        """
        return cls.parse(tomli_w.dumps(written(plain(table, name))), name, folder)

    @classmethod
    def _of(cls, table: Mapping[str, Any], name: str, folder: str | os.PathLike[str]) -> Scenario:
        """What a table says that the native reader has accepted."""
        named = [{"name": scheme, **inner} for scheme, inner in table.get("scheme", {}).items()]
        names = cls.fields_by_key()
        fields = {names[key]: value for key, value in {**table, "scheme": named}.items()}
        return cls(**fields, name=name, folder=FilePath(folder))

    def to_table(self) -> dict[str, Any]:
        """The keys that were given, as a dictionary of plain values."""
        table = {key: value for key, value in Table.to_table(self).items() if value != {}}
        if "scheme" in table:
            table["scheme"] = self._by_name(table["scheme"])
        return table

    def _by_name(self, schemes: list[dict[str, Any]]) -> dict[str, Any]:
        """Definitions as a file has them, where the name is part of the header."""
        tables = {}
        for scheme in schemes:
            name = scheme.pop("name")
            if name in tables:
                raise ScenarioError(f"{self.name}: two schemes are called `{name}`: give each a name of its own")
            tables[name] = scheme
        return tables

    def to_toml(self, *, resolved: bool = False) -> str:
        """The text of a file that says the same: what was given, or with `resolved` everything.

        The resolved text is canonical: scenarios that mean the same have the same one.
        """
        return self._resolved if resolved else tomli_w.dumps(self.to_table())

    def resolved(self) -> Scenario:
        """The scenario with every default in it."""
        return Scenario.parse(self._resolved, self.name, self.folder)

    def with_values(self, values: Mapping[str, Any]) -> Scenario:
        """The scenario with other values, as `--set` puts them in: by dotted key, later ones over earlier ones.

        An element of a list goes by its name, by its index from 0, or by `*` for all of them. What follows from a value
        by default follows from the new one.

        >>> scenario = Scenario.parse('[run]\\nduration = "5 s"\\n[[path]]\\nrate = "1 Mbit/s"\\ndelay = "10 ms"')
        >>> scenario.with_values({"path.*.loss": 0.02, "run.seeds": 20}).paths[0].loss
        0.02

        Raises `ScenarioError` if a key matches nothing, or the scenario is wrong with these values.
        """
        given = {key: written(plain(value, key)) for key, value in values.items()}
        try:
            _native.resolve(self.to_toml(), self.name, [(key, literal(value)) for key, value in given.items()])
        except ScenarioError as error:
            # A value that was put in has no place in a file, so that the message does not name it.
            raise ScenarioError(re.sub(r"(?m)^ (?=\S)", f"{self.name}: ", str(error))) from None
        table = self.to_table()
        for key, value in given.items():
            put(table, key, value)
        return Scenario._of(table, self.name, self.folder)


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
