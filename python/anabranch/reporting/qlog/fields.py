"""Typed access to fields of events. A value of another type is refused with file and line."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from anabranch.reporting.qlog.records import Record

MAX_LETTERS = 80
"""Maximum number of letters of a name or a reason. The rest is cut off."""

_LARGEST = 2**53


def number_of(record: Record, value: Any, key: str) -> float | None:
    """Returns a number of at least 0; `None` if it is missing or means infinity, as an ssthresh may."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        record.refuse(f"`{key}`: expected a number, 0 or more, found {shown(value)}")
    return float(value) if value <= _LARGEST and math.isfinite(value) else None


def whole_of(record: Record, value: Any, key: str) -> int | None:
    """Returns a whole number of at least 0; `None` if it is missing or larger than 2**53."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        record.refuse(f"`{key}`: expected a whole number, 0 or more, found {shown(value)}")
    return value if value <= _LARGEST else None


def word_of(record: Record, value: Any, key: str) -> str:
    """Returns a text, cut to `MAX_LETTERS`; empty if it is missing."""
    if value is None:
        return ""
    if not isinstance(value, str):
        record.refuse(f"`{key}`: expected text, found {shown(value)}")
    return value[:MAX_LETTERS]


def name_of(record: Record, value: Any, key: str) -> str:
    """Returns the name of a path: its own, or `path-N` for identifier N."""
    if isinstance(value, str) and value:
        # Decisions separate names by spaces.
        return value[:MAX_LETTERS].replace(" ", "_")
    number = whole_of(record, value, key)
    return f"path-{number}"


def object_of(record: Record, value: Any, key: str) -> Mapping[str, Any]:
    """Returns an object; empty if it is missing."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        record.refuse(f"`{key}`: expected an object, found {shown(value)}")
    return value


def shown(value: Any) -> str:
    """Returns a value for an error, cut to 40 characters."""
    return repr(value)[:40]
