"""Cost of a reproduction in runs and time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from anabranch.results import Results


@dataclass(slots=True)
class Cost:
    """Number of computed runs, number of runs from the cache, packets with DATA in the computed runs, and elapsed time.

    Verdicts do not depend on the cost.
    """

    computed: int = 0
    cached: int = 0
    packets: float = 0.0
    seconds: float = 0.0

    def add(self, results: Results) -> None:
        """Adds the cost of a sweep.

        The packets of the computed runs are estimated from the mean over all runs of the sweep.
        """
        import pyarrow.compute as pc

        effort = results.effort
        if effort is None:
            return
        self.computed += effort.computed
        self.cached += effort.cached
        packets = pc.sum(results.paths["sent_packets"]).as_py() or 0
        self.packets += packets * effort.computed / max(effort.computed + effort.cached, 1)

    def __str__(self) -> str:
        """Returns the line that the command prints at its end."""
        text = f"{self.computed + self.cached:,} runs, {self.cached:,} of them from the cache, in {self.seconds:.0f} s"
        if not self.computed:
            return text
        return (
            f"{text}; computed were {self.computed / self.seconds:,.0f} runs and "
            f"{self.packets / self.seconds:,.0f} simulated packets with DATA per second"
        )
