"""What a reproduction takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.results import Results


@dataclass(slots=True)
class Cost:
    """Runs that were computed and taken from caches, simulated packets with DATA of those computed, and the time.

    None of it is in the verdicts.
    """

    computed: int = 0
    cached: int = 0
    packets: float = 0.0
    seconds: float = 0.0

    def add(self, results: Results) -> None:
        """Counts a sweep. Where only some of its runs were computed, they are taken to have the mean of packets."""
        import pyarrow.compute as pc

        effort = results.effort
        if effort is None:
            return
        self.computed += effort.computed
        self.cached += effort.cached
        packets = pc.sum(results.paths["sent_packets"]).as_py() or 0
        self.packets += packets * effort.computed / max(effort.computed + effort.cached, 1)

    def __str__(self) -> str:
        """As the command prints it at its end."""
        text = f"{self.computed + self.cached:,} runs, {self.cached:,} of them from the cache, in {self.seconds:.0f} s"
        if not self.computed:
            return text
        return (
            f"{text}; computed were {self.computed / self.seconds:,.0f} runs and "
            f"{self.packets / self.seconds:,.0f} simulated packets with DATA per second"
        )
