"""The stopping rule: seeds are added until the interval of the mean is narrow enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from anabranch.errors import SweepError
from anabranch.values import did_you_mean, real_number, whole_number

# Columns of table `runs` of which a mean can be asked for.
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
    """How exact means have to be: seeds are added to a point and scheme until they are.

    Enough is where the half-width of the 95 % confidence interval of the mean of `metric`, by Student's t, is below
    `within` times the mean. `least` seeds are run in any case, `most` at the most. Samples that are all the same have
    no spread, so for them `least` is enough. What is decided depends on the first seeds' figures only, never on which
    run was finished first.

    Looking at the interval again and again makes it a little too narrow: of intervals that ended a sweep, somewhat
    fewer than 95 % hold the true mean. A larger `least` makes that smaller.

        Precision(within=0.02, least=10, most=200)
    """

    metric: str = "goodput_kbps"
    within: float = 0.05
    least: int = 5
    most: int = 100

    def __post_init__(self) -> None:
        faults: list[str] = []
        if self.metric not in METRICS:
            hint = did_you_mean(str(self.metric), METRICS)
            faults.append(f"`metric`: there is no figure `{self.metric}`; {hint}there are: {', '.join(METRICS)}")
        readers: dict[str, Callable[[], float]] = {
            "within": lambda: real_number("within", self.within, "a fraction of the mean more than 0, such as 0.05"),
            "least": lambda: whole_number("least", self.least, least=2),
            "most": lambda: whole_number("most", self.most, least=2),
        }
        for name, read in readers.items():
            try:
                object.__setattr__(self, name, read())
            except SweepError as error:
                faults.append(str(error))
        if not faults and self.least > self.most:
            faults.append(f"`least`: {self.least} is more than `most`, {self.most}")
        if faults:
            raise SweepError("\n".join(faults))

    def wanted(self, samples: Sequence[float | None]) -> int:
        """How many seeds there should be, given the samples of the first ones: as many as there are if that is enough.

        A sample that has no such figure (`None`) makes no interval, so that all `most` seeds are run.
        """
        n = len(samples)
        if n < self.least:
            return self.least
        if n >= self.most or self.is_reached(samples):
            return n
        # More at once than needed would be wasted, fewer would take more rounds.
        return min(self.most, max(n + 1, min(2 * n, self._expected(samples))))

    def is_reached(self, samples: Sequence[float | None]) -> bool:
        """Whether the mean of these samples is exact enough."""
        figures = [sample for sample in samples if sample is not None]
        if len(figures) < max(2, len(samples)):
            return False
        if all(figure == figures[0] for figure in figures):
            return True
        return half_width(figures) < self.within * abs(mean(figures))

    def _expected(self, samples: Sequence[float | None]) -> int:
        """The number of samples that would do if the spread stayed as it is."""
        figures = [sample for sample in samples if sample is not None]
        goal = self.within * abs(mean(figures)) if len(figures) == len(samples) else 0.0
        if goal == 0.0:
            return 2 * len(samples)
        return math.ceil(len(samples) * min((half_width(figures) / goal) ** 2, 2.0))


def mean(samples: Sequence[float]) -> float:
    """The mean, summed exactly."""
    return math.fsum(samples) / len(samples)


def half_width(samples: Sequence[float]) -> float:
    """Half the width of the 95 % confidence interval of the mean, by Student's t, for two samples or more."""
    # This part of SciPy loads in a tenth of the time of `scipy.stats`.
    from scipy.special import stdtrit

    n = len(samples)
    centre = mean(samples)
    variance = math.fsum((sample - centre) ** 2 for sample in samples) / (n - 1)
    return float(stdtrit(n - 1, 0.975)) * math.sqrt(variance / n)
