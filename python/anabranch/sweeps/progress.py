"""Progress bar of a sweep."""

from __future__ import annotations

import sys
from types import TracebackType

from tqdm import tqdm


def write_warning(text: str) -> None:
    """Writes a warning to standard error, above the bars that are shown."""
    tqdm.write(f"warning: {text}", file=sys.stderr)


class Progress:
    """Bar with finished runs, the rate and the remaining time, on standard error, by default on terminals only.

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
        """Adds runs to the total."""
        self._bar.total += runs
        self._bar.refresh()

    def cached(self) -> None:
        """Counts a run from the cache as done, without effect on the rate."""
        if not self._bar.disable:
            self._bar.n += 1
            self._bar.initial += 1
            self._bar.last_print_n += 1
            self._bar.update(0)

    def computed(self) -> None:
        """Counts a finished run."""
        self._bar.update()

    def write_line(self, text: str) -> None:
        """Writes a line to standard error, above the bar if there is one."""
        self._bar.write(text, file=sys.stderr)
