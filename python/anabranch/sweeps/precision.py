"""Stopping rule: seeds are added until the interval of the mean is narrow enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anabranch.errors import SweepError
from anabranch.values import did_you_mean, real_number, whole_number

# Columns of table `runs` whose mean can be requested.
METRICS = (
    "goodput_kbps",
    "duration_s",
    "retransmissions",
    "timeouts",
    "heartbeat_timeouts",
    "fast_retransmits",
    "spurious_retransmissions",
    "peak_reorder_bytes",
    "rwnd_blocked_s",
    "jain_index",
)


@dataclass(frozen=True, slots=True)
class Precision:
    """Requested precision of means: seeds are added to a point and scheme until it is reached.

    It is reached when the half-width of the 95 % confidence interval of the mean of `metric`, by Student's t, is below
    `within` times the mean. From `min_seeds` to `max_seeds` seeds are run. Equal samples have no spread, so
    `min_seeds` of them suffice. The decision depends only on the figures of the first seeds, and not on the order in
    which runs finish.

    Repeated tests of the interval make it slightly too narrow: somewhat fewer than 95 % of the intervals that ended a
    sweep contain the true mean. A larger `min_seeds` reduces this effect.

        Precision(within=0.02, min_seeds=10, max_seeds=200)
    """

    metric: str = "goodput_kbps"
    within: float = 0.05
    min_seeds: int = 5
    max_seeds: int = 100

    def __post_init__(self) -> None:
        faults: list[str] = []
        if self.metric not in METRICS:
            hint = did_you_mean(str(self.metric), METRICS)
            faults.append(f"`metric`: unknown figure `{self.metric}`; {hint}choose one of: {', '.join(METRICS)}")
        readers: dict[str, Callable[[], float]] = {
            "within": lambda: real_number("within", self.within, "a fraction of the mean more than 0, such as 0.05"),
            "min_seeds": lambda: whole_number("min_seeds", self.min_seeds, least=2),
            "max_seeds": lambda: whole_number("max_seeds", self.max_seeds, least=2),
        }
        for name, read in readers.items():
            try:
                object.__setattr__(self, name, read())
            except SweepError as error:
                faults.append(str(error))
        if not faults and self.min_seeds > self.max_seeds:
            faults.append(f"`min_seeds`: {self.min_seeds} is more than `max_seeds`, {self.max_seeds}")
        if faults:
            raise SweepError("\n".join(faults))

    def required_seeds(self, samples: Sequence[float | None]) -> int:
        """Returns the required number of seeds, given the samples of the first ones; their own number if it suffices.

        A sample without the figure (`None`) makes no interval, so that all `max_seeds` seeds are run.
        """
        n = len(samples)
        if n < self.min_seeds:
            return self.min_seeds
        if n >= self.max_seeds or self.is_reached(samples):
            return n
        # More seeds at once than needed would be wasted, and fewer would take more rounds.
        return min(self.max_seeds, max(n + 1, min(2 * n, self._expected(samples))))

    def is_reached(self, samples: Sequence[float | None]) -> bool:
        """Returns `True` if the mean of these samples is precise enough."""
        figures = [sample for sample in samples if sample is not None]
        if len(figures) < max(2, len(samples)):
            return False
        if all(figure == figures[0] for figure in figures):
            return True
        return half_width(figures) < self.within * abs(mean(figures))

    def _expected(self, samples: Sequence[float | None]) -> int:
        """Returns the number of samples that would suffice with the current spread."""
        figures = [sample for sample in samples if sample is not None]
        goal = self.within * abs(mean(figures)) if len(figures) == len(samples) else 0.0
        if goal == 0.0:
            return 2 * len(samples)
        return math.ceil(len(samples) * min((half_width(figures) / goal) ** 2, 2.0))


def mean(samples: Sequence[float]) -> float:
    """Returns the mean, summed exactly."""
    return math.fsum(samples) / len(samples)


def half_width(samples: Sequence[float]) -> float:
    """Returns half the 95 % confidence interval of the mean, by Student's t, for at least two samples."""
    # `scipy.special` loads in a tenth of the time of `scipy.stats`.
    from scipy.special import stdtrit

    n = len(samples)
    centre = mean(samples)
    variance = math.fsum((sample - centre) ** 2 for sample in samples) / (n - 1)
    return float(stdtrit(n - 1, 0.975)) * math.sqrt(variance / n)
