"""Fields of events as what they should be. Whatever else they are is refused with file and line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from anabranch.reporting.qlog.records import Record

MOST_LETTERS = 80
"""Of a name or a reason; the rest is cut off."""

_LARGEST = 2**53


def number_of(record: Record, value: Any, key: str) -> float | None:
    """A number that is not negative. `None` for one that stands for infinity, as an ssthresh may."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        record.refuse(f"`{key}`: expected a number, 0 or more, found {shown(value)}")
    return float(value) if value <= _LARGEST and math.isfinite(value) else None


def whole_of(record: Record, value: Any, key: str) -> int | None:
    """A whole number that is not negative; `None` where there is none, or one that is larger than 2**53."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        record.refuse(f"`{key}`: expected a whole number, 0 or more, found {shown(value)}")
    return value if value <= _LARGEST else None


def word_of(record: Record, value: Any, key: str) -> str:
    """A text, cut to a bearable length; empty where there is none."""
    if value is None:
        return ""
    if not isinstance(value, str):
        record.refuse(f"`{key}`: expected text, found {shown(value)}")
    return value[:MOST_LETTERS]


def name_of(record: Record, value: Any, key: str) -> str:
    """What a path is called: its name, or `path-N` for identifier N."""
    if isinstance(value, str) and value:
        # Decisions separate names by blanks.
        return value[:MOST_LETTERS].replace(" ", "_")
    number = whole_of(record, value, key)
    return f"path-{number}"


def object_of(record: Record, value: Any, key: str) -> Mapping[str, Any]:
    """An object; empty where there is none."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        record.refuse(f"`{key}`: expected an object, found {shown(value)}")
    return value


def shown(value: Any) -> str:
    """What was found, in a few letters."""
    return repr(value)[:40]
