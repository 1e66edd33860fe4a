"""Seeds in arguments and on command lines."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import SupportsIndex, TypeAlias

from anabranch.errors import SweepError
from anabranch.sweeps.precision import Precision

Seeds: TypeAlias = "SupportsIndex | Iterable[SupportsIndex]"

# Maximum number of seeds in a scenario file.
MAX_SEEDS = 100_000
_LARGEST = 2**63 - 1


def read_seeds(given: Seeds | None, until: Precision | None) -> list[int] | None:
    """Returns the seeds: 1 to a number, or the seeds of a list. Returns `None` if the seeds of the scenario apply.

    If a stopping rule is given, the list has as many seeds as the rule may use. Raises `SweepError`.
    """
    if given is None:
        return list(range(1, until.max_seeds + 1)) if until else None
    seeds = _listed(given)
    if until is None:
        return seeds
    if len(seeds) < until.max_seeds:
        raise SweepError(
            f"`seeds`: there are {len(seeds)}, and the stopping rule may use {until.max_seeds}: name more, or none"
        )
    return seeds[: until.max_seeds]


def parse_seeds(text: str) -> int | list[int]:
    """Parses seeds of a command line: `5` is a number of seeds; `3,7,10-12` is a list, and so is `7,`.

    Raises `SweepError`.
    """
    if text.strip().isdecimal():
        return int(text)
    seeds: list[int] = []
    for part in filter(None, (part.strip() for part in text.split(","))):
        first, dash, last = part.partition("-")
        if not first.strip().isdecimal() or (dash and not last.strip().isdecimal()):
            raise SweepError(f"`{part}` is not a seed; write a number of seeds such as 20, or a list such as 3,7,10-12")
        numbers = range(int(first), int(last if dash else first) + 1)
        if not 1 <= len(numbers) <= MAX_SEEDS:
            raise SweepError(f"`{part}` goes backwards, or has more than {MAX_SEEDS} seeds")
        seeds += numbers
    return seeds


def _listed(given: Seeds) -> list[int]:
    if not isinstance(given, Iterable):
        count = _integer(given)
        if not 1 <= count <= MAX_SEEDS:
            raise SweepError(f"`seeds`: expected a number of seeds from 1 to {MAX_SEEDS}, found {count}")
        return list(range(1, count + 1))
    if isinstance(given, (str, bytes)):
        raise SweepError(f"`seeds`: expected a number such as 20, or a list such as [1, 5, 9], found {given!r}")
    seeds = [_integer(seed) for seed in given]
    if not 1 <= len(seeds) <= MAX_SEEDS:
        raise SweepError(f"`seeds`: expected a list of 1 to {MAX_SEEDS} seeds, found {len(seeds)}")
    for seed in seeds:
        if not 0 <= seed <= _LARGEST:
            raise SweepError(f"`seeds`: expected whole numbers from 0 to {_LARGEST}, found {seed}")
    if len(set(seeds)) < len(seeds):
        twice = next(seed for at, seed in enumerate(seeds) if seed in seeds[:at])
        raise SweepError(f"`seeds`: {twice} is in the list twice: both runs would be the same run")
    return seeds


def _integer(value: object) -> int:
    if not isinstance(value, SupportsIndex) or isinstance(value, bool):
        raise SweepError(f"`seeds`: expected whole numbers, found {value!r}")
    return operator.index(value)
