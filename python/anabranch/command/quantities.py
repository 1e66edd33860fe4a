"""Sizes, times, rates and numbers in options.

Sizes, times and rates have the format of the native commands (`crates/cli/src/quantity.rs`): a number and a unit, with
or without a blank between them, such as `64KiB` or `1.5 s`. The default units are bytes, seconds and bit/s. `K`, `M`
and `G`, in either case, are powers of 1024 bytes.
"""

from __future__ import annotations

import argparse
import re
from fractions import Fraction

from anabranch.quantity import RATES, SIZES, TIMES

_QUANTITY = re.compile(r"(\d{1,18}(?:\.\d{1,18})?)\s*([A-Za-z]*)", re.ASCII)
_SHORT_SIZES = {"": "B", "K": "KiB", "M": "MiB", "G": "GiB"}
_MAX_NUMBER = 100_000


def time_s(text: str) -> float:
    """Returns a time in seconds.

    >>> time_s("250ms"), time_s("2 min"), time_s("5")
    (0.25, 120.0, 5.0)
    """
    found = _QUANTITY.fullmatch(text.strip())
    size = None if found is None else TIMES.get(found[2] or "s")
    if found is None or size is None:
        raise argparse.ArgumentTypeError(
            f"{text[:32]!r} is not a time: expected seconds, or a unit as in 500ms, 5s, 2min or 1h"
        )
    return float(Fraction(found[1]) * size / TIMES["s"])


def time_within(text: str, least_s: float, most_s: float) -> float:
    """Returns a time in seconds between two bounds."""
    time = time_s(text)
    if not least_s <= time <= most_s:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not between {least_s:g}s and {most_s:g}s")
    return time


def size_bytes(text: str) -> int:
    """Returns a size in bytes.

    >>> size_bytes("1452"), size_bytes("64K"), size_bytes("1.5 kB")
    (1452, 65536, 1500)
    """
    found = _QUANTITY.fullmatch(text.strip())
    unit = None if found is None else SIZES.get(_SHORT_SIZES.get(found[2].upper(), found[2]))
    size = None if found is None or unit is None else Fraction(found[1]) * unit
    if size is None or size.denominator != 1:
        raise argparse.ArgumentTypeError(
            f"{text[:32]!r} is not a size: expected bytes, or a unit as in 64K, 64KiB, 1.5M, 10MB or 1G"
        )
    return int(size)


def rate_mbps(text: str) -> float:
    """Returns a rate in Mbit/s.

    >>> rate_mbps("100kbit"), rate_mbps("8M"), rate_mbps("1 Gbit")
    (0.1, 8.0, 1000.0)
    """
    found = _QUANTITY.fullmatch(text.strip().removesuffix("/s"))
    prefix = None if found is None else found[2].removesuffix("bit").lower()
    names = {"": "bit/s", "k": "kbit/s", "m": "Mbit/s", "g": "Gbit/s"}
    if found is None or prefix not in names:
        raise argparse.ArgumentTypeError(
            f"{text[:32]!r} is not a rate: expected bits per second, or a unit as in 500K, 8M, 10Mbit or 1Gbit/s"
        )
    return float(Fraction(found[1]) * RATES[names[prefix]] / RATES["Mbit/s"])


def times_between(text: str) -> tuple[float, float]:
    """Returns two times in seconds.

    >>> times_between("500ms,2s")
    (0.5, 2.0)
    """
    try:
        start, end = (time_s(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected two times such as 10s,11s, not {text!r}") from None
    return start, end


def positive(text: str) -> int:
    """Returns a whole number above 0, with an upper bound, so that counted objects fit into memory.

    >>> positive("20")
    20
    """
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
    if not 1 <= number <= _MAX_NUMBER:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not a whole number from 1 to {_MAX_NUMBER}")
    return number
