"""Plan files: a scenario, and the axes of a sweep."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from anabranch import _native
from anabranch.errors import PlanError, SweepError
from anabranch.sweeps.precision import Precision
from anabranch.text_file import read_text

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Keys: TypeAlias = "str | tuple[str, ...]"

_KEYS = ("scenario", "schemes", "seeds", "over", "until", "set")
_UNTIL = ("metric", "within", "min_seeds", "max_seeds")
# Tables of a scenario file. Every scenario has one of them.
_OF_SCENARIOS = {"run", "path", "link", "association"}


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """Scenario that is part of the package."""

    name: str
    text: str
    folder: None = None

    def to_toml(self) -> str:
        """Returns the text of the scenario."""
        return self.text


@dataclass(frozen=True, slots=True)
class Piped:
    """Scenario that was read from a pipe, such as `/dev/stdin`.

    Files that its flows name are in the current folder.
    """

    name: str
    text: str
    folder: None = None

    def to_toml(self) -> str:
        """Returns the text of the scenario."""
        return self.text


@dataclass(slots=True)
class Plan:
    """Content of a plan; arguments of `anabranch.sweep` by other names. `over` may contain `"scheme"`."""

    scenario: Path | BuiltIn | Piped
    over: dict[Keys, list[Any]] = field(default_factory=dict)
    overrides: dict[str, Any] = field(default_factory=dict)
    seeds: int | list[int] | None = None
    until: Precision | None = None


def read_plan(path: Path) -> Plan:
    """Reads a plan file, a scenario file, which is a plan that sweeps nothing, or a built-in plan or scenario.

    A file takes precedence over a built-in one of that name. Raises `PlanError` with all errors of the plan. Errors of
    the scenario are found later.
    """
    is_name = len(path.parts) == 1 and not path.suffix
    if is_name and (not path.exists() or path.is_dir()):
        return _built_in(str(path))
    try:
        text = read_text(path)
        document = tomllib.loads(text)
    except OSError as error:
        raise PlanError(f"{path}: the plan cannot be read: {error.strerror}") from error
    except (UnicodeError, tomllib.TOMLDecodeError) as error:
        raise PlanError(f"{path}: is not TOML: {error}") from error
    if "scenario" not in document and _OF_SCENARIOS & set(document):
        # A pipe can be read only once.
        return Plan(path if path.is_file() else Piped(str(path), text))
    return _Reader(path, text).read(document)


def _built_in(name: str) -> Plan:
    files = _native.built_in_files(name)
    if files is None:
        near = difflib.get_close_matches(name, _native.built_in_names(), n=1)
        remedy = f"; did you mean `{near[0]}`?" if near else "; `anabranch init` lists those that there are"
        raise PlanError(f"{name}: no such file, and no built-in plan or scenario{remedy}")
    (own_name, text), *beside = files
    if not beside:
        return Plan(BuiltIn(name, text))
    plan = _Reader(Path(own_name), text).read(tomllib.loads(text))
    (scenario_name, scenario) = beside[0]
    plan.scenario = BuiltIn(Path(scenario_name).stem, scenario)
    return plan


class _Reader:
    """Reader of a plan, which collects its faults."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._lines = text.splitlines()
        self._faults: list[str] = []

    def read(self, document: dict[str, Any]) -> Plan:
        self._unknown(document, _KEYS, "")
        plan = Plan(
            scenario=self._path.parent / self._scenario(document),
            over=self._over(document),
            overrides=dict(self._flat("set", self._table(document, "set"))),
            seeds=self._seeds(document.get("seeds")),
            until=self._until(document),
        )
        if self._faults:
            raise PlanError("\n".join(self._faults))
        return plan

    def _fault(self, key: str, message: str) -> None:
        """Records a fault, with the line that seems to have the key, since TOML's reader does not report lines."""
        last = re.escape(key.rsplit(".", 1)[-1])
        at = (number for number, line in enumerate(self._lines, 1) if re.match(rf'\s*\[*["\']?(\S*\.)?{last}\b', line))
        line = next(at, None)
        place = f"{self._path}:{line}" if line else f"{self._path}"
        self._faults.append(f"{place}: {message}")

    def _unknown(self, table: Mapping[str, Any], known: Iterable[str], prefix: str) -> None:
        known = list(known)
        for key in table:
            if key not in known:
                near = difflib.get_close_matches(key, known, 1)
                hint = f"; did you mean `{near[0]}`?" if near else ""
                self._fault(key, f"unknown key `{prefix}{key}`: expected one of: {', '.join(known)}{hint}")

    def _table(self, document: dict[str, Any], key: str) -> dict[str, Any]:
        table = document.get(key, {})
        if isinstance(table, dict):
            return table
        self._fault(key, f"`{key}`: expected a table, [{key}]")
        return {}

    def _scenario(self, document: dict[str, Any]) -> str:
        scenario = document.get("scenario")
        if isinstance(scenario, str) and scenario:
            return scenario
        self._fault("scenario", '`scenario`: expected the path of a scenario file from here, such as "two-path.toml"')
        return ""

    def _over(self, document: dict[str, Any]) -> dict[Keys, list[Any]]:
        over: dict[Keys, list[Any]] = {}
        for key, values in self._flat("over", self._table(document, "over")):
            if not isinstance(values, list):
                self._fault(key, f"`over.{key}`: expected a list of values such as [0, 0.01], found {values!r}")
                continue
            keys = tuple(part.strip() for part in key.split(","))
            over[keys if len(keys) > 1 else key] = values
        if "schemes" in document:
            schemes = document["schemes"]
            if not isinstance(schemes, list) or not all(isinstance(scheme, str) for scheme in schemes):
                self._fault("schemes", '`schemes`: expected a list such as ["cmt", "cmt-pf"]')
            elif "scheme" in over:
                self._fault("schemes", "`schemes`: `over` has a list of schemes too: omit one of them")
            else:
                over["scheme"] = schemes
        return over

    def _flat(self, name: str, table: dict[str, Any], above: str = "") -> Iterable[tuple[str, Any]]:
        """Yields keys with dots in quotes, and those without quotes, which are nested tables in TOML."""
        for key, value in table.items():
            if isinstance(value, dict) and "." not in key:
                yield from self._flat(name, value, f"{above}{key}.")
            else:
                yield f"{above}{key}", value

    def _seeds(self, seeds: Any) -> int | list[int] | None:
        if seeds is None or _is_integer(seeds):
            return seeds  # type: ignore[no-any-return]
        if isinstance(seeds, list) and all(_is_integer(seed) for seed in seeds):
            return seeds
        self._fault("seeds", f"`seeds`: expected a number such as 20, or a list such as [1, 5, 9], found {seeds!r}")
        return None

    def _until(self, document: dict[str, Any]) -> Precision | None:
        if "until" not in document:
            return None
        table = self._table(document, "until")
        self._unknown(table, _UNTIL, "until.")
        try:
            return Precision(**{key: value for key, value in table.items() if key in _UNTIL})
        except SweepError as error:
            for fault in str(error).splitlines():
                self._fault(fault.split("`")[1], f"until: {fault}")
            return None


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
