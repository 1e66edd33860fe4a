"""What the checks found."""

from __future__ import annotations

from dataclasses import dataclass, field

from studies.trials.known import Broken
from studies.trials.verdict import Judged, Verdict, worst_of


@dataclass(frozen=True, slots=True)
class Finding:
    """A scheme in one setting: a mean over seeds that is to lie between `low` and `high`. `note` says what with."""

    setting: str
    judged: Judged
    low: float
    high: float
    note: str = ""

    @property
    def reached(self) -> bool:
        """Whether the mean itself lies there."""
        return self.low <= self.judged.mean <= self.high

    @property
    def excess(self) -> float:
        """How far the mean is from what is allowed, as a factor; the further, the more it is above 1."""
        mean = max(self.judged.mean, 1e-9)
        return max(self.low / mean, mean / self.high if self.high > 0 else mean)


@dataclass(frozen=True, slots=True)
class Overall:
    """A verdict on all settings of a check together, in words."""

    name: str
    verdict: Verdict
    text: str


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """A check of one scheme. Its settings count one by one, unless there is a verdict on all of them."""

    check: str
    title: str
    limit: str
    scheme: str
    findings: tuple[Finding, ...]
    overall: tuple[Overall, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """Of the whole check."""
        if self.overall:
            return worst_of([each.verdict for each in self.overall])
        return worst_of([each.judged.verdict for each in self.findings])

    @property
    def broken(self) -> list[Broken]:
        """Each limit that is broken."""
        if self.overall:
            names = [each.name for each in self.overall if each.verdict is Verdict.BROKEN]
        else:
            names = [each.setting for each in self.findings if each.judged.verdict is Verdict.BROKEN]
        return [Broken(self.scheme, self.check, name) for name in names]

    @property
    def worst(self) -> Finding | None:
        """The finding that is furthest from its limit; none if nothing was compared."""
        return max(self.findings, key=lambda each: each.excess, default=None)

    def count(self, verdict: Verdict) -> int:
        """Settings with this verdict."""
        return sum(each.judged.verdict is verdict for each in self.findings)


@dataclass(frozen=True, slots=True)
class Plan:
    """What all checks have in common.

    `seeds` are those that are compared; paths and schemes to compare with are chosen on `choosing`.
    """

    schemes: tuple[str, ...]
    seeds: tuple[int, ...]
    choosing: tuple[int, ...]
    duration_s: float
    least_seeds: int
