"""Values of a scenario as numbers with a unit: `"45 ms"`, `"5 %"`, a loss of 0.05."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_QUANTITY = re.compile(r"\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*(%|[A-Za-z][A-Za-z/]*)\s*")

# Units of scenario files, with their size in the first one.
TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "min": 60 * 10**9, "h": 3600 * 10**9}
RATES = {"bit/s": 1, "kbit/s": 10**3, "Mbit/s": 10**6, "Gbit/s": 10**9}
SIZES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_UNITS = (TIMES, RATES, SIZES, {"packets": 1}, {"%": 1})


@dataclass(frozen=True, slots=True)
class Numbers:
    """Values of one swept key as numbers in `unit`, which is empty if they have none."""

    values: tuple[float, ...]
    unit: str


def numbers_of(key: str, values: Iterable[object]) -> Numbers | None:
    """Returns the values in the unit of the largest of them; `None` if the values are words, or of different
    dimensions.

    A probability of loss is in per cent.

    >>> numbers_of("path.path-2.delay", ["500 ms", "1 s"])
    Numbers(values=(0.5, 1.0), unit='s')
    >>> numbers_of("path.path-2.loss", [0.0, 0.05])
    Numbers(values=(0.0, 5.0), unit='%')
    """
    items = list(values)
    is_loss = key.rsplit(".", 1)[-1] == "loss"
    parsed = [_parsed(item, is_loss) for item in items]
    known = [each for each in parsed if each is not None]
    if not items or len(known) < len(items):
        return None
    family = _family(known[0][1])
    if any(_family(unit) is not family for _, unit in known):
        return None
    if family is None:
        return Numbers(tuple(number for number, _ in known), "")
    sizes = [number * family[unit] for number, unit in known]
    unit = known[sizes.index(max(sizes))][1]
    return Numbers(tuple(number * family[of] / family[unit] for number, of in known), unit)


def in_base_unit(text: str) -> float:
    """Returns a quantity of a canonical scenario as a time in ns, a rate in bit/s or a size in bytes.

    >>> in_base_unit("10 Mbit/s")
    10000000.0
    """
    number, unit = text.split(" ")
    return float(number) * next(family[unit] for family in _UNITS if unit in family)


def _parsed(value: object, is_loss: bool) -> tuple[float, str] | None:
    """Returns a number and its unit."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        if match := _QUANTITY.fullmatch(value):
            return (float(match[1]), match[2]) if _family(match[2]) else None
        value = _plain(value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return None
    # 0.07 * 100 is 7.000000000000001.
    return (round(number * 100, 10), "%") if is_loss and 0 <= number <= 1 else (number, "")


def _plain(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return None


def _family(unit: str) -> dict[str, int] | None:
    return next((family for family in _UNITS if unit in family), None)
