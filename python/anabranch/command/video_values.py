"""Values of options of `anabranch video`, read from text for argparse."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction

_SIZE = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})")
_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,6})?) ?(ms|s)")
_RATE = re.compile(r"\d{1,6}(?:/\d{1,6}|\.\d{1,6})?")
_MOST_NUMBER = 10**9


def whole_number(text: str) -> int:
    """A number up to a billion."""
    if not (text.isascii() and text.isdecimal() and int(text[:12]) <= _MOST_NUMBER):
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is no whole number up to {_MOST_NUMBER}")
    return int(text)


def frame_size(text: str) -> tuple[int, int]:
    """Width and height."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a width and a height, as 176x144, found {text[:32]!r}")
    return int(found[1]), int(found[2])


def frame_rate(text: str) -> Fraction:
    """Frames a second."""
    try:
        if _RATE.fullmatch(text):
            return Fraction(text)
    except ZeroDivisionError:
        pass
    raise argparse.ArgumentTypeError(f"expected frames a second, as 30 or 30000/1001, found {text[:32]!r}")


def duration_ms(text: str) -> float:
    """Milliseconds."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a time with its unit, as 150ms or 0.3s, found {text[:32]!r}")
    return float(found[1]) * (1000 if found[2] == "s" else 1)
