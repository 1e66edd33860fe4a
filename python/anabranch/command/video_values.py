"""Values of options of `anabranch video`, parsed from text for argparse."""

from __future__ import annotations

import argparse
import re
from fractions import Fraction

from anabranch.command.quantities import time_s, time_within
from anabranch.video.bounds import MAX_DEADLINE_MS

_SIZE = re.compile(r"([1-9]\d{0,4})x([1-9]\d{0,4})")
_RATE = re.compile(r"\d{1,6}(?:/\d{1,6}|\.\d{1,6})?")
_PORT = re.compile(r"[0-9]{1,5}")
_MAX_NUMBER = 10**9
_MIN_SECONDS = 0.001
_MAX_SECONDS = 86_400
_MAX_PORT = 65_535


def whole_number(text: str) -> int:
    """Returns a number up to a billion."""
    if not (text.isascii() and text.isdecimal() and int(text[:12]) <= _MAX_NUMBER):
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not a whole number up to {_MAX_NUMBER}")
    return int(text)


def frame_size(text: str) -> tuple[int, int]:
    """Returns width and height."""
    found = _SIZE.fullmatch(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"expected a width and a height, as 176x144, found {text[:32]!r}")
    return int(found[1]), int(found[2])


def frame_rate(text: str) -> Fraction:
    """Returns the rate in frames a second."""
    try:
        if _RATE.fullmatch(text):
            return Fraction(text)
    except ZeroDivisionError:
        pass
    raise argparse.ArgumentTypeError(f"expected frames a second, as 30 or 30000/1001, found {text[:32]!r}")


def deadline_ms(text: str) -> float:
    """Returns the time from sending to playout in milliseconds."""
    # The unit is required: milliseconds are usual here, but the default unit is seconds.
    if text.strip()[-1:].isdigit():
        raise argparse.ArgumentTypeError(f"expected a time with its unit, as 150ms or 0.3s, found {text[:32]!r}")
    time_ms = 1000 * time_s(text)
    if not 0 < time_ms <= MAX_DEADLINE_MS:
        raise argparse.ArgumentTypeError(
            f"a deadline of {time_ms:g} ms: give one above 0, up to {MAX_DEADLINE_MS / 1000:g} s"
        )
    return time_ms


def seconds(text: str) -> float:
    """Returns a waiting time in seconds."""
    return time_within(text, _MIN_SECONDS, _MAX_SECONDS)


def port(text: str) -> int:
    """Returns a port from 1 to 65535."""
    number = int(text) if _PORT.fullmatch(text) else 0
    if not 1 <= number <= _MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text[:32]!r} is not a port from 1 to {_MAX_PORT}")
    return number
