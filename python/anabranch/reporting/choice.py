"""Which runs a timeline has, as `--timeline SCHEME[@KEY=VALUE,...]` asks for them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anabranch.errors import ReportError

MOST_RUNS = 10
"""Runs that a timeline has unless others are asked for."""

MOST_CHOSEN = 40
"""Runs that a timeline has at the most, so that what is asked for does not decide how large a report becomes."""

_SEED = "seed"
# Runs that are named one by one where they are left out.
_FEW = 5
_LARGEST_SEED = 2**64 - 1

ALL = "all"


class ChoiceError(ReportError):
    """A run was asked for that is not there."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A scheme (`all` for every one), values of swept keys as text, and a seed.

    Keys that it leaves out have their first value, as the seed has.
    """

    scheme: str
    values: tuple[tuple[str, str], ...] = ()
    seed: int | None = None


def parse(text: str) -> Choice:
    """Reads `SCHEME[@KEY=VALUE,...]`. A value may have commas, as long as no word with `=` follows one.

    >>> parse("cmt(trigger=4)@path.path-2.loss=0.02,association.recv_buffer=64 KiB").values
    (('path.path-2.loss', '0.02'), ('association.recv_buffer', '64 KiB'))
    >>> parse("all@seed=3").seed
    3

    Raises `ChoiceError` for anything else.
    """
    scheme, _, rest = text.partition("@")
    values, seed = [], None
    for part in re.split(r",(?=\s*[\w.*-]+\s*=)", rest) if rest else []:
        key, equals, value = part.partition("=")
        if not equals or not key.strip():
            raise ChoiceError(f"`{text}`: expected SCHEME@KEY=VALUE,..., found `{part}` where KEY=VALUE should be")
        if key.strip() == _SEED:
            seed = _seed(text, value.strip())
        else:
            values.append((key.strip(), value.strip()))
    if not scheme.strip():
        raise ChoiceError(f"`{text}`: expected SCHEME[@KEY=VALUE,...], and the scheme is missing")
    return Choice(scheme.strip(), tuple(values), seed)


def _seed(text: str, value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= 20 and int(value) <= _LARGEST_SEED):
        raise ChoiceError(f"`{text}`: a seed is a number from 0 to {_LARGEST_SEED}, found `{value}`")
    return int(value)


def schemes_of(choice: Choice, known: Sequence[str]) -> list[str]:
    """The schemes that a choice names. Raises `ChoiceError` with those there are if its is none of them."""
    if choice.scheme == ALL and ALL not in known:
        return list(known)
    if choice.scheme not in known:
        raise ChoiceError(f"there are no runs of `{choice.scheme}`; there are: {listed(known)}")
    return [choice.scheme]


def left_out(runs: Sequence[str]) -> list[str]:
    """A warning about the runs that were asked for and have no room on the timeline, if there are any."""
    if not runs:
        return []
    few = "; ".join(runs[:_FEW])
    more = f"; and {len(runs) - _FEW} more" if len(runs) > _FEW else ""
    return [
        f"A timeline has {MOST_CHOSEN} runs at the most. Left out of those that were asked for: {few}{more}. A second "
        "report has room for them."
    ]


def listed(names: Iterable[object]) -> str:
    """Names in backticks, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)
