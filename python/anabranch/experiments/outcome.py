"""The verdicts on studies, as `verdicts.json` holds them. Pages are made from nothing else.

The same runs give the same content: there are no times, versions or host names in it.
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
"""Significant digits of numbers. More would differ from one processor to the next."""


class EstimateOutcome(TypedDict):
    """A mean with half of its 95 % interval. `kind` is as in `anabranch.statistics.Estimate`."""

    mean: float | None
    half_width: float | None
    n: int
    kind: str


class PartOutcome(TypedDict):
    """One of the findings that a verdict rests on. `detectable` is the least difference that its seeds would detect, in
    its unit, if the width of an interval keeps it undecided."""

    label: str
    verdict: str
    ours: EstimateOutcome
    unit: str
    detail: str
    detectable: float | None


class Sensitivity(TypedDict):
    """The verdict on a claim under a change. `decides` says whether the change may decide it."""

    change: str
    kind: str
    verdict: str
    parts: list[PartOutcome]
    decides: bool


class ClaimOutcome(TypedDict):
    """A claim with its verdict. `default` is the verdict without a look at variants; `depends_on` are those that
    change it."""

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
    """What a change makes of a scheme: the mean of the experiment's measure without and with it, and the difference in
    percent, paired by seed."""

    scheme: str
    default: EstimateOutcome
    changed: EstimateOutcome
    difference: EstimateOutcome


class ChangeOutcome(TypedDict):
    """A variant, a reading or an ablation. `what` says what is changed, `decided` names the question of a reading."""

    id: str
    kind: str
    about: str
    unknown: str
    decided: str
    what: str
    schemes: list[SchemeChange]


class FigureOutcome(TypedDict):
    """A figure, by the name of its files. `table` has a header and rows where the figure is one in words."""

    name: str
    kind: str
    title: str
    files: list[str]
    table: list[list[str]]


class ExperimentOutcome(TypedDict):
    """An experiment. `runs` counts those of the default setting, `failed` how many of them failed."""

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
    """Why claims are not reproduced."""

    claims: list[str]
    text: str
    evidence: list[str]


class StudyOutcome(TypedDict):
    """A study."""

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
    """Everything that was reproduced, with how much of it was asked for."""

    format: str
    scope: Mapping[str, bool | int | None]
    studies: list[StudyOutcome]


def estimate(of: Estimate) -> EstimateOutcome:
    """An estimate as JSON has it."""
    return {"mean": _plain(of.mean), "half_width": _plain(of.half_width), "n": of.n, "kind": of.kind}


def part(of: Part) -> PartOutcome:
    """A finding as JSON has it."""
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
