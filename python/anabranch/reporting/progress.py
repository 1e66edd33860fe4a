"""Progress bars on standard error for long operations, shown on terminals only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


class Progress:
    """Progress bars with the label `name`. They are shown on terminals only, and never if `quiet` is set."""

    def __init__(self, *, quiet: bool, name: str = "report") -> None:
        self._name = name
        # With None, tqdm shows the bar on a terminal only.
        self._disable = True if quiet else None

    def track(self, items: Sequence[Item], unit: str) -> Iterator[Item]:
        """Yields the items and advances a bar after each."""
        with self.bar(len(items), unit) as step:
            for item in items:
                yield item
                step()

    @contextmanager
    def bar(self, total: int, unit: str) -> Iterator[Callable[[], object]]:
        """Shows a bar of `total` steps. The caller calls the yielded function after each step."""
        from tqdm import tqdm

        shown = {"desc": self._name, "disable": self._disable, "leave": False, "dynamic_ncols": True}
        with tqdm(total=total, unit=unit, **shown) as bar:
            yield bar.update
