"""Faults that the native reader finds, gathered over all points of a grid."""

from __future__ import annotations

import re

from anabranch.errors import SweepError

SHOWN = 25
# The line that a fault points to and what was expected there stand under it, behind a bar.
_CONTINUED = re.compile(r"^\s+(\d+ )?\|")


class Faults:
    """Faults without repetitions, in the order in which they were found."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._found: dict[str, None] = {}

    def add(self, message: str) -> None:
        """Takes one message, or one that has several faults of a scenario."""
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
        # Faults of values that were put in have no place in the file, and do not name it.
        named = first if first.startswith(self._file) else f"{self._file}: {first}"
        self._found["\n".join([named, *lines[1:]])] = None

    def raise_if_any(self) -> None:
        """Raises `SweepError` with all of them, or the first `SHOWN` and how many more there are."""
        if not self._found:
            return
        shown = list(self._found)[:SHOWN]
        if more := len(self._found) - len(shown):
            shown.append(f"and {more} more")
        raise SweepError("\n".join(shown))
