"""Choice of the runs of a timeline, as in `--timeline SCHEME[@KEY=VALUE,...]`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from anabranch.errors import ReportError

MAX_RUNS = 10
"""Default number of runs of a timeline."""

MAX_CHOSEN = 40
"""Maximum number of runs of a timeline, so that the choice of runs does not determine the size of a report."""

_SEED = "seed"
# Maximum number of omitted runs that are named individually.
_FEW = 5
_LARGEST_SEED = 2**64 - 1

ALL = "all"


class ChoiceError(ReportError):
    """A chosen run does not exist."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Scheme (`all` for every scheme), values of swept keys as text, and a seed.

    Missing keys, and a missing seed, have their first value.
    """

    scheme: str
    values: tuple[tuple[str, str], ...] = ()
    seed: int | None = None


def parse(text: str) -> Choice:
    """Parses `SCHEME[@KEY=VALUE,...]`. A value may contain commas if no word with `=` follows one.

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
    """Returns the schemes that a choice names. Raises `ChoiceError` with the known schemes if it names none of them."""
    if choice.scheme == ALL and ALL not in known:
        return list(known)
    if choice.scheme not in known:
        raise ChoiceError(f"no runs of `{choice.scheme}`; choose one of: {listed(known)}")
    return [choice.scheme]


def left_out(runs: Sequence[str]) -> list[str]:
    """Returns a warning about chosen runs that exceed the limit of the timeline, if there are any."""
    if not runs:
        return []
    few = "; ".join(runs[:_FEW])
    more = f"; and {len(runs) - _FEW} more" if len(runs) > _FEW else ""
    return [
        f"A timeline has {MAX_CHOSEN} runs at most. Omitted from the requested ones: {few}{more}. Write a second "
        "report with them."
    ]


def listed(names: Iterable[object]) -> str:
    """Returns names in backticks, separated by commas."""
    return ", ".join(f"`{name}`" for name in names)
