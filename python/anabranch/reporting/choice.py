"""Which runs the timeline shows, as `--timeline SCHEME[@KEY=VALUE,...]` asks for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anabranch.errors import ReportError

MOST_RUNS = 10
"""Runs that a timeline shows unless others are asked for."""

ALL = "all"


class ChoiceError(ReportError):
    """A run was asked for that is not there."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A scheme (`all` for every one), and values of swept keys as text.

    Keys that it leaves out have their first value.
    """

    scheme: str
    values: tuple[tuple[str, str], ...] = ()


def parse(text: str) -> Choice:
    """Reads `SCHEME[@KEY=VALUE,...]`. A value may have commas, as long as no word with `=` follows one.

    >>> parse("cmt(trigger=4)@path.path-2.loss=0.02,association.recv_buffer=64 KiB")
    Choice(scheme='cmt(trigger=4)', values=(('path.path-2.loss', '0.02'), ('association.recv_buffer', '64 KiB')))

    Raises `ChoiceError` for anything else.
    """
    scheme, _, rest = text.partition("@")
    values = []
    for part in re.split(r",(?=\s*[\w.*-]+\s*=)", rest) if rest else []:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ChoiceError(f"`{text}`: expected SCHEME@KEY=VALUE,..., found `{part}` where KEY=VALUE should be")
        values.append((key.strip(), value.strip()))
    if not scheme.strip():
        raise ChoiceError(f"`{text}`: expected SCHEME[@KEY=VALUE,...], and the scheme is missing")
    return Choice(scheme.strip(), tuple(values))


def schemes_of(choice: Choice, known: Sequence[str]) -> list[str]:
    """The schemes that a choice names. Raises `ChoiceError` with those there are if its is none of them."""
    if choice.scheme == ALL and ALL not in known:
        return list(known)
    if choice.scheme not in known:
        raise ChoiceError(f"there are no runs of `{choice.scheme}`; there are: {listed(known)}")
    return [choice.scheme]


def listed(names: Iterable[object]) -> str:
    """Names in backticks, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)
