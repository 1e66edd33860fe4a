"""Verdicts on studies in the form of `verdicts.json`, the only input of the pages.

The content has no times, versions or host names, so equal runs give equal content.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypedDict

from anabranch.estimate import Estimate
from anabranch.experiments.verdicts.finding import Part

FORMAT = "anabranch experiments 3"

VERDICTS_FILE = "verdicts.json"
RUN_FILE = "run.json"

DIGITS = 9
"""Significant digits of numbers. Further digits would differ between processors."""


class EstimateOutcome(TypedDict):
    """Mean with half of its 95 % interval. `kind` is that of `anabranch.statistics.Estimate`."""

    mean: float | None
    half_width: float | None
    n: int
    kind: str


class PartOutcome(TypedDict):
    """Finding that a verdict depends on.

    `detectable` is the smallest difference that its seeds would detect, in its unit, if its interval is too wide for a
    decision.
    """

    label: str
    verdict: str
    ours: EstimateOutcome
    unit: str
    detail: str
    detectable: float | None


class Sensitivity(TypedDict):
    """Verdict on a claim under a change. `decides` is `True` if the change may decide the claim."""

    change: str
    kind: str
    verdict: str
    parts: list[PartOutcome]
    decides: bool


class ClaimOutcome(TypedDict):
    """Claim with its verdict.

    `default` is the verdict without variants, and `depends_on` are the variants that change it.
    """

    id: str
    rank: str
    status: str
    contradiction: str
    note: str
    says: str
    checked: str
    claimed: str
    verdict: str
    default: str
    depends_on: list[str]
    parts: list[PartOutcome]
    detail: str
    sensitivity: list[Sensitivity]
    causes: list[int]


class SchemeChange(TypedDict):
    """Effect of a change on a scheme: means of the experiment's measure, and their paired difference in percent."""

    scheme: str
    default: EstimateOutcome
    changed: EstimateOutcome
    difference: EstimateOutcome


class ChangeOutcome(TypedDict):
    """Variant, reading or ablation. `what` describes the change, and `decided` names the question of a reading."""

    id: str
    kind: str
    about: str
    unknown: str
    decided: str
    what: str
    schemes: list[SchemeChange]


class FigureOutcome(TypedDict):
    """Figure with the names of its files. `table` has header and rows of a figure that is a table."""

    name: str
    kind: str
    title: str
    files: list[str]
    table: list[list[str]]


class ExperimentOutcome(TypedDict):
    """Experiment. `runs` counts the runs of the default setting, and `failed` the failed ones."""

    id: str
    title: str
    source: str
    note: str
    deferred: str
    unknowns: list[str]
    measure: str
    seeds: int
    runs: int
    failed: int
    figures: list[FigureOutcome]
    claims: list[ClaimOutcome]
    changes: list[ChangeOutcome]


class CauseOutcome(TypedDict):
    """Reason why claims are not reproduced."""

    claims: list[str]
    text: str
    evidence: list[str]


class StudyOutcome(TypedDict):
    """Study with its experiments."""

    key: str
    title: str
    authors: list[str]
    venue: str
    year: int
    doi: str
    decided: dict[str, str]
    experiments: list[ExperimentOutcome]
    causes: list[CauseOutcome]


class Outcome(TypedDict):
    """Results of a reproduction with the selected scope."""

    format: str
    scope: Mapping[str, bool | int | str | None]
    studies: list[StudyOutcome]


def estimate(of: Estimate) -> EstimateOutcome:
    """Returns an estimate in the form of JSON."""
    return {"mean": _plain(of.mean), "half_width": _plain(of.half_width), "n": of.n, "kind": of.kind}


def part(of: Part) -> PartOutcome:
    """Returns a finding in the form of JSON."""
    return {
        "label": of.label,
        "verdict": of.finding.verdict.value,
        "ours": estimate(of.finding.ours),
        "unit": of.finding.unit,
        "detail": of.finding.detail,
        "detectable": None if (least := of.finding.detectable) is None else _plain(least),
    }


def _plain(value: float) -> float | None:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
