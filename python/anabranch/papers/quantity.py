"""Quantities of canonical scenarios as numbers."""

from __future__ import annotations

_RATES = {"bit/s": 1, "kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
_SIZES = {"B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_TIMES = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600}


def bits_per_second(rate: str) -> float:
    """A rate of a canonical scenario.

    >>> bits_per_second("10 Mbit/s")
    10000000.0
    """
    return _number(rate, _RATES)


def size_bytes(size: str) -> float:
    """A size of a canonical scenario.

    >>> size_bytes("64 KiB")
    65536.0
    """
    return _number(size, _SIZES)


def seconds(time: str) -> float:
    """A time of a canonical scenario.

    >>> seconds("45 ms")
    0.045
    """
    return _number(time, _TIMES)


def _number(text: str, units: dict[str, float]) -> float:
    number, _, unit = text.partition(" ")
    return float(number) * units[unit]
