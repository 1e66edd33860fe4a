"""Faults of the native reader, collected over all points of a grid."""

from __future__ import annotations

import re

from anabranch.errors import SweepError

SHOWN = 25
# Below a fault, lines with a bar show the line of the file and the expected value.
_CONTINUED = re.compile(r"^\s+(\d+ )?\|")


class Faults:
    """Unique faults, in the order in which they were found."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: dict[str, None] = {}

    def add(self, message: str) -> None:
        """Adds one message, which may have several faults of a scenario."""
        fault: list[str] = []
        for line in message.splitlines():
            if fault and not _CONTINUED.match(line):
                self._keep(fault)
                fault = []
            fault.append(line)
        self._keep(fault)

    def _keep(self, lines: list[str]) -> None:
        if not lines:
            return
        first = lines[0].strip()
        # Faults of `overrides` have no place in the file, and do not name it.
        named = first if first.startswith(self._file) else f"{self._file}: {first}"
        self._found["\n".join([named, *lines[1:]])] = None

    def raise_if_any(self) -> None:
        """Raises `SweepError` with all faults, or the first `SHOWN` and the number of others."""
        if not self._found:
            return
        shown = list(self._found)[:SHOWN]
        if more := len(self._found) - len(shown):
            shown.append(f"and {more} more")
        raise SweepError("\n".join(shown))
