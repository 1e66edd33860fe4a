"""Findings of checks, with their form in JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar

from anabranch.experiments.limits.known import Broken
from anabranch.experiments.limits.rules import MIN_SEEDS, Judged, Verdict, within, worst_of

T = TypeVar("T")

DIGITS = 6
"""Significant digits of stored means."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding about a scheme at one point: a mean over seeds that has to be between `low` and `high`.

    `note` explains it.
    """

    setting: str
    judged: Judged
    low: float
    high: float
    note: str = ""

    @property
    def reached(self) -> bool:
        """Returns `True` if the mean is between the limits, regardless of its bounds."""
        return self.low <= self.judged.mean <= self.high

    @property
    def excess(self) -> float:
        """Ratio of the mean to its limit, above 1 if the limit is exceeded."""
        mean = max(self.judged.mean, 1e-9)
        return max(self.low / mean, mean / self.high if self.high > 0 else mean)


@dataclass(frozen=True, slots=True)
class Overall:
    """Verdict on all points of a check together, in words."""

    name: str
    verdict: Verdict
    text: str


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """Check of one scheme. Each point counts separately, unless `overall` contains a verdict on all of them."""

    check: str
    title: str
    limit: str
    scheme: str
    findings: tuple[Finding, ...]
    overall: tuple[Overall, ...] = field(default=())

    @property
    def verdict(self) -> Verdict:
        """Verdict of the whole check."""
        if self.overall:
            return worst_of([each.verdict for each in self.overall])
        return worst_of([each.judged.verdict for each in self.findings])

    @property
    def broken(self) -> list[Broken]:
        """Broken limits."""
        if self.overall:
            names = [each.name for each in self.overall if each.verdict is Verdict.BROKEN]
        else:
            names = [each.setting for each in self.findings if each.judged.verdict is Verdict.BROKEN]
        return [Broken(self.scheme, self.check, name) for name in names]

    @property
    def worst(self) -> Finding | None:
        """Finding that is furthest beyond its limit; `None` if no point was compared."""
        return max(self.findings, key=lambda each: each.excess, default=None)

    def count(self, verdict: Verdict) -> int:
        """Returns the number of points with this verdict."""
        return sum(each.judged.verdict is verdict for each in self.findings)


@dataclass(frozen=True, slots=True)
class Plan:
    """Seeds, duration and schemes that all checks have in common.

    The checks compare runs of `seeds`. The best schemes to compare with are chosen from runs of the seeds `choosing`.
    """

    schemes: tuple[str, ...]
    seeds: tuple[int, ...]
    duration_s: float
    choosing: tuple[int, ...] = ()
    least_seeds: int = MIN_SEEDS

    def find(
        self, setting: str, values: Sequence[float], low: float = -math.inf, high: float = math.inf, note: str = ""
    ) -> Finding:
        """Judges the values of a point, whose mean has to be between `low` and `high`."""
        return Finding(setting, within(values, low, high, self.least_seeds), low, high, note)

    def outcomes(
        self, check: str, title: str, limit: str, points: Iterable[T], find: Callable[[str, T], Finding]
    ) -> list[CheckOutcome]:
        """Returns the outcome of a check for each scheme, with the finding that `find` returns at each point."""
        listed = list(points)
        return [
            CheckOutcome(check, title, limit, scheme, tuple(find(scheme, point) for point in listed))
            for scheme in self.schemes
        ]


def as_json(plan: Plan, outcomes: Iterable[CheckOutcome]) -> dict[str, Any]:
    """Returns the outcome in the form of JSON."""
    return {"plan": asdict(plan), "checks": [_check_json(each) for each in outcomes]}


def _check_json(each: CheckOutcome) -> dict[str, Any]:
    return {
        "check": each.check,
        "title": each.title,
        "limit": each.limit,
        "scheme": each.scheme,
        "verdict": each.verdict.value,
        "overall": [{"name": part.name, "verdict": part.verdict.value, "text": part.text} for part in each.overall],
        "settings": [_finding_json(finding) for finding in each.findings],
    }


def _finding_json(each: Finding) -> dict[str, Any]:
    judged = each.judged
    numbers = {
        "low": each.low,
        "high": each.high,
        "mean": judged.mean,
        "lower": judged.lower,
        "upper": judged.upper,
    }
    finite = {name: float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None for name, value in numbers.items()}
    return {"setting": each.setting, "verdict": judged.verdict.value, "n": judged.n, **finite, "note": each.note}


def of_json(content: Mapping[str, Any]) -> tuple[Plan, list[CheckOutcome]]:
    """Returns the outcome that `as_json` has converted.

    Raises `LookupError`, `TypeError` or `ValueError` if the content has another form.
    """
    plan: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in content["plan"].items()
    }
    return Plan(**plan), [_check(each) for each in content["checks"]]


def _check(each: Mapping[str, Any]) -> CheckOutcome:
    return CheckOutcome(
        each["check"],
        each["title"],
        each["limit"],
        each["scheme"],
        tuple(_finding(finding) for finding in each["settings"]),
        tuple(Overall(part["name"], Verdict(part["verdict"]), part["text"]) for part in each["overall"]),
    )


def _finding(each: Mapping[str, Any]) -> Finding:
    lower, upper = (math.nan if each[end] is None else each[end] for end in ("lower", "upper"))
    judged = Judged(Verdict(each["verdict"]), each["n"], each["mean"], lower, upper)
    low = -math.inf if each["low"] is None else each["low"]
    high = math.inf if each["high"] is None else each["high"]
    return Finding(each["setting"], judged, low, high, each["note"])
