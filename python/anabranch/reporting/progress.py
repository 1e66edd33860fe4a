"""Progress of longer work on standard error; unseen if that is no terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TypeVar

Item = TypeVar("Item")


class Progress:
    """Bars that are shown on a terminal only, and never if `quiet`. `name` stands before each."""

    def __init__(self, *, quiet: bool, name: str = "report") -> None:
        self._name = name
        # tqdm takes None for "unless it is a terminal".
        self._disable = True if quiet else None

    def track(self, items: Sequence[Item], unit: str) -> Iterator[Item]:
        """The items, one after the other."""
        with self.bar(len(items), unit) as step:
            for item in items:
                yield item
                step()

    @contextmanager
    def bar(self, total: int, unit: str) -> Iterator[Callable[[], object]]:
        """A bar of so many steps; what it gives is called after each."""
        from tqdm import tqdm

        shown = {"desc": self._name, "disable": self._disable, "leave": False, "dynamic_ncols": True}
        with tqdm(total=total, unit=unit, **shown) as bar:
            yield bar.update
