"""Limits that are known to be broken, so that a regular check fails only if another one breaks."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from anabranch.errors import PlanError
from anabranch.text_file import read_text

_FORMAT = "anabranch known 1"


@dataclass(frozen=True, slots=True, order=True)
class Broken:
    """Limit of a check that a scheme breaks at a point."""

    scheme: str
    check: str
    setting: str

    def __str__(self) -> str:
        return f"{self.scheme}: {self.check}: {self.setting}"


def read_known(file: Path) -> frozenset[Broken]:
    """Reads a list of broken limits. Raises `PlanError` that names the file."""
    try:
        document = json.loads(read_text(file))
        if document["format"] != _FORMAT:
            raise ValueError(f"its format is not {_FORMAT}")
        return frozenset(Broken(*each) for each in document["broken"])
    except OSError as error:
        raise PlanError(f"{file}: cannot be read: {error.strerror}; --store-known {file} writes it") from error
    except (ValueError, TypeError, LookupError) as error:
        raise PlanError(f"{file}: is not a list of broken limits: {error}; --store-known {file} replaces it") from error


def write_known(file: Path, broken: Iterable[Broken]) -> None:
    """Writes a list of broken limits."""
    listed = [[each.scheme, each.check, each.setting] for each in sorted(broken)]
    rows = ",\n".join(f"    {json.dumps(each)}" for each in listed)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'{{\n  "format": "{_FORMAT}",\n  "broken": [\n{rows}\n  ]\n}}\n', encoding="utf-8")


def news(broken: Iterable[Broken], known: Iterable[Broken]) -> tuple[list[Broken], list[Broken]]:
    """Returns the broken limits that are not known, and the known ones that are not broken."""
    now, before = set(broken), set(known)
    return sorted(now - before), sorted(before - now)
