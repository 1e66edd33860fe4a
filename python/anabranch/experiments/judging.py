"""Verdicts on the claims of a study from its measurements, in the form of `verdicts.json`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from anabranch.experiments import outcome as out
from anabranch.experiments.claims.claim import Claim
from anabranch.experiments.claims.quantity import shared
from anabranch.experiments.jobs import Measured, Measurements
from anabranch.experiments.model import DEFAULT, Change, Experiment, Measure
from anabranch.experiments.samples import LeftOutError, SampleGrid
from anabranch.experiments.selection import Selection
from anabranch.experiments.study import Study
from anabranch.experiments.verdicts.estimates import complete, estimate, mean_of
from anabranch.experiments.verdicts.finding import Judgement, decided
from anabranch.experiments.verdicts.rules import percent_above


def judge_study(
    selection: Selection, measured: Measured, figures: Mapping[str, list[out.FigureOutcome]]
) -> out.StudyOutcome:
    """Returns the verdicts on the claims of the selected experiments."""
    study = selection.study
    return {
        "key": study.key,
        "title": study.title,
        "authors": list(study.authors),
        "venue": study.venue,
        "year": study.year,
        "doi": study.doi,
        "decided": dict(study.decided),
        "experiments": [
            _experiment(study, experiment, measured, figures.get(experiment.id, []))
            for experiment in selection.experiments
        ],
        "causes": [
            {"claims": list(cause.claims), "text": cause.text, "evidence": list(cause.evidence)}
            for cause in study.causes
        ],
    }


def _experiment(
    study: Study, experiment: Experiment, measured: Measured, figures: list[out.FigureOutcome]
) -> out.ExperimentOutcome:
    default = measured.get(study, experiment.id)
    changes = [
        (change, measurements)
        for change in experiment.changes
        if (measurements := measured.get(study, experiment.id, change.id))
    ]
    run = [change for change, _ in changes]
    return {
        "id": experiment.id,
        "title": experiment.title,
        "source": experiment.source,
        "note": experiment.note,
        "deferred": experiment.deferred,
        "unknowns": list(experiment.unknowns),
        "measure": str(experiment.measure),
        "seeds": len(default.setting.seeds) if default else 0,
        "runs": default.runs if default else 0,
        "failed": default.failed if default else 0,
        "figures": figures,
        "claims": [_claim(study, experiment, claim, measured, run) for claim in study.claims_of(experiment.id)],
        "changes": [_change(experiment.measure, change, default, changed) for change, changed in changes if default],
    }


def _claim(
    study: Study, experiment: Experiment, claim: Claim, measured: Measured, changes: list[Change]
) -> out.ClaimOutcome:
    default = _judged(study, claim, measured, DEFAULT)
    changed = [
        (change, _judged(study, claim, measured, change.id))
        for change in changes
        if not change.claims or claim.id in change.claims
    ]
    variants = {change.id: judgement for change, judgement in changed if change.kind == "variant"}
    verdict, depends_on = decided(default, variants)
    return {
        "id": claim.id,
        "rank": claim.rank,
        "status": claim.status,
        "contradiction": claim.contradiction,
        "note": claim.note,
        "says": claim.says,
        "checked": claim.statement.describe(experiment),
        "claimed": claim.statement.claimed(),
        "verdict": verdict.value,
        "default": default.verdict.value,
        "depends_on": list(depends_on),
        "parts": [out.part(part) for part in default.parts],
        "detail": default.detail,
        "sensitivity": [
            {
                "change": change.id,
                "kind": change.kind,
                "verdict": judgement.verdict.value,
                "parts": [out.part(part) for part in judgement.parts],
                "decides": change.id in variants,
            }
            for change, judgement in changed
        ],
        "causes": [index for index, cause in enumerate(study.causes) if claim.id in cause.claims],
    }


def _judged(study: Study, claim: Claim, measured: Measured, setting: str) -> Judgement:
    """Returns the verdict on a claim under a setting.

    If an experiment was not run with this setting, its measurements with the default setting are used.
    """

    def grids(experiment: str, measure: Measure) -> SampleGrid:
        found = measured.get(study, experiment, setting) or measured.get(study, experiment)
        if found is None or measure not in found.grids:
            raise LeftOutError(f"experiment {experiment} was not run")
        return found.grids[measure]

    return claim.judge(grids)


def _change(measure: Measure, change: Change, default: Measurements, changed: Measurements) -> out.ChangeOutcome:
    return {
        "id": change.id,
        "kind": change.kind,
        "about": change.about,
        "unknown": change.unknown,
        "decided": change.decided,
        "what": str(change),
        "schemes": _scheme_changes(measure, default, changed),
    }


def _scheme_changes(measure: Measure, default: Measurements, changed: Measurements) -> list[out.SchemeChange]:
    """Returns the means of each scheme in both settings, over the samples that are complete in both."""
    if measure not in default.grids or measure not in changed.grids:
        return []
    found: list[out.SchemeChange] = []
    at = {axis.name: axis.values for axis in changed.setting.axes}
    for scheme in changed.setting.schemes:
        grids = default.grids[measure], changed.grids[measure]
        before, after = complete(*shared([(grid.seeds, grid.sample(scheme, at)) for grid in grids]))
        if before.size:
            found.append(
                {
                    "scheme": scheme,
                    "default": out.estimate(mean_of(before)),
                    "changed": out.estimate(mean_of(after)),
                    "difference": out.estimate(estimate(percent_above, np.stack([after, before]))),
                }
            )
    return found
