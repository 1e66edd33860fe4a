"""The progress bar of a sweep."""

from __future__ import annotations

import sys
from types import TracebackType

from tqdm import tqdm


class Progress:
    """Runs that are done, the rate and the time left, on standard error; unseen if that is no terminal.

    `shown` is `True` for a bar in any case and `False` for none.
    """

    def __init__(self, shown: bool | None = None) -> None:
        disable = None if shown is None else not shown
        self._bar = tqdm(total=0, unit="run", desc="sweep", disable=disable, dynamic_ncols=True, leave=False)

    def __enter__(self) -> Progress:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.refresh()
        self._bar.close()

    def add(self, runs: int) -> None:
        """There are so many more to do."""
        self._bar.total += runs
        self._bar.refresh()

    def cached(self) -> None:
        """A run was found in the cache: it counts as done, and says nothing about the rate."""
        if not self._bar.disable:
            self._bar.n += 1
            self._bar.initial += 1
            self._bar.last_print_n += 1
            self._bar.update(0)

    def computed(self) -> None:
        """A run was made."""
        self._bar.update()

    def write_line(self, text: str) -> None:
        """Writes a line to standard error, above the bar if there is one."""
        self._bar.write(text, file=sys.stderr)
