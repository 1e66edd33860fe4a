"""Pairs of links: synthetic ones, and sections of recordings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from studies.recorded import sections
from studies.recorded.runs import DELAYS, QUEUE, X, Y
from studies.recorded.sections import Section

DRAWN_PER_DIRECTION = 32
"""Number of sections of each direction that are drawn: those of the study `recorded`."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Two links in the notation of `anabranch relay --link`."""

    name: str
    links: tuple[str, str]
    section: Section | None = None
    """Recording that the links follow. `{file}` in the links is the place of its table."""

    def written(self, folder: Path, outage: tuple[float, float] | None) -> list[str]:
        """Returns the links, and writes their traces into a folder. The first link is down during the outage."""
        file = self.section.write(folder) if self.section else ""
        links = [link.format(file=file) for link in self.links]
        if outage is not None:
            trace = folder / "outage.csv"
            down, up = outage
            trace.write_text(f"time,up\n0,1\n{down:g},0\n{up:g},1\n", encoding="utf-8")
            links[0] += f',outage_trace=(file="{trace}",repeat=false)'
        return links


SYNTHETIC = (
    Setting("equal", ("rate=10Mbit,delay=20ms,queue=100ms", "rate=10Mbit,delay=20ms,queue=100ms")),
    Setting("fast-slow", ("rate=20Mbit,delay=10ms,queue=100ms", "rate=4Mbit,delay=40ms,queue=100ms")),
    Setting("late", ("rate=10Mbit,delay=10ms,queue=100ms", "rate=10Mbit,delay=150ms,queue=100ms")),
    Setting("lossy", ("rate=10Mbit,delay=20ms,queue=100ms", "rate=10Mbit,delay=20ms,loss=1%,queue=100ms")),
    Setting("bloated", ("rate=10Mbit,delay=20ms,queue=50ms", "rate=5Mbit,delay=30ms,queue=1s")),
)


def recorded(data: Path, most_mbps: float, draw: int) -> list[Setting]:
    """Returns the sections of the study `recorded` whose links have at most this mean rate together."""
    chosen = sections.choose(data, DRAWN_PER_DIRECTION, draw)
    return [_of(section) for section in chosen if sum(section.means) <= most_mbps]


def _of(section: Section) -> Setting:
    return Setting(section.name, (_followed("x_mbps", DELAYS[X]), _followed("y_mbps", DELAYS[Y])), section)


def _followed(column: str, delay: str) -> str:
    """Returns a link that follows a column of the section's table."""
    return f'capacity=(file="{{file}}",column={column}),delay={delay},queue={QUEUE}'.replace(" ", "")


def spread(settings: Iterable[Setting], count: int) -> list[Setting]:
    """Returns this many settings, in equal distances of the list."""
    listed = list(settings)
    count = min(count, len(listed))
    return [listed[number * len(listed) // count] for number in range(count)]
