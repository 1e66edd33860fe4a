"""From papers to verdicts: runs what experiments need, and judges their claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np

from anabranch.papers import outcome as out
from anabranch.papers.catalogue import Selection
from anabranch.papers.claim import Claim
from anabranch.papers.collecting import Cost, Means, collect, grid_of
from anabranch.papers.judge import decided, judge, shared
from anabranch.papers.model import DEFAULT, Experiment, Measure, Paper
from anabranch.papers.pages import wording
from anabranch.papers.plan import Curve, Scope, Setting, Wanted, settings_of, wanted
from anabranch.papers.samples import Grid, LeftOutError
from anabranch.papers.tracing import Columns, Tracer, cells_of
from anabranch.papers.verdicts.estimates import complete, estimate
from anabranch.papers.verdicts.finding import Judgement
from anabranch.papers.verdicts.rules import percent_above


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """What was measured under one setting of an experiment. Runs themselves are not kept."""

    setting: Setting
    grids: Mapping[Measure, Grid]
    curves: Mapping[Curve, Mapping[tuple[str, tuple[int, ...], int], Columns]]
    runs: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class Job:
    """One setting of an experiment, with what is wanted of it."""

    paper: Paper
    setting: Setting
    wanted: Wanted

    @property
    def runs(self) -> int:
        """How many runs it makes, traced ones counted as well."""
        cells = len(self.setting.schemes) * len(self.setting.seeds)
        for axis in self.setting.axes:
            cells *= len(axis.values)
        return (cells if self.wanted.tables else 0) + len(cells_of(self.wanted))


@dataclass(slots=True)
class Measured:
    """Samples of all experiments that were run, by paper, experiment and setting."""

    samples: dict[tuple[str, str, str], Samples] = field(default_factory=dict)

    def of(self, paper: Paper, experiment: str, setting: str = DEFAULT) -> Samples | None:
        """Samples of a setting, or of the default one if the experiment has no such setting."""
        found = self.samples.get((paper.key, experiment, setting))
        return found or self.samples.get((paper.key, experiment, DEFAULT))


def jobs_of(selections: Iterable[Selection], scope: Scope) -> list[Job]:
    """Everything that has to be run for the experiments selected, with those that their claims compare them with."""
    jobs = []
    for selection in selections:
        paper = selection.paper
        chosen = [experiment.id for experiment in selection.experiments]
        claims = [claim for claim in paper.claims if claim.experiment in chosen]
        needed = {identity for claim in claims for identity, _ in claim.quantities()}
        for experiment in paper.experiments:
            if experiment.id in chosen:
                settings = settings_of(experiment, scope)
            elif experiment.id in needed:
                settings = settings_of(experiment, scope)[:1]
            else:
                continue
            jobs += [Job(paper, setting, _wanted(setting, claims)) for setting in settings]
    return jobs


def _wanted(setting: Setting, claims: Iterable[Claim]) -> Wanted:
    """What claims and figures want; of a variant, only the claims that it may decide."""
    only = setting.change.claims if setting.change else ()
    return wanted(setting, [claim for claim in claims if not only or claim.id in only])


def measure(job: Job, means: Means, tracer: Tracer, cost: Cost, done: Callable[[int], None]) -> Samples:
    """Runs one job. `done` is called with numbers of runs that are finished.

    Raises what `anabranch.sweep` raises.
    """
    grids: dict[Measure, Grid] = {}
    runs = failed = 0
    if job.wanted.tables:
        collected = collect(job.setting, means, cost)
        runs, failed = collected.keys.size, len(collected.failures)
        grids = {each: collected.grid(each) for each in job.wanted.tables}
        done(runs)
    traced = tracer.trace(job.setting, job.wanted, lambda: done(1))
    for each, values in traced.values.items():
        grids[each] = _traced_grid(job.setting, values)
    return Samples(job.setting, grids, traced.curves, runs or len(cells_of(job.wanted)), failed)


def _traced_grid(setting: Setting, values: Mapping[tuple[str, tuple[int, ...], int], float]) -> Grid:
    shape = (len(setting.schemes), *(len(axis.values) for axis in setting.axes), len(setting.seeds))
    found = np.full(shape, np.nan)
    schemes = list(setting.schemes)
    for (scheme, cell, seed), value in values.items():
        if seed in setting.seeds:
            found[(schemes.index(scheme), *cell, setting.seeds.index(seed))] = value
    return grid_of(setting, found)


def judge_paper(
    selection: Selection, measured: Measured, figures: Mapping[str, list[out.FigureOutcome]]
) -> out.PaperOutcome:
    """The verdicts on the claims of the experiments selected."""
    paper = selection.paper
    experiments = [
        _experiment(paper, experiment, measured, figures.get(experiment.id, [])) for experiment in selection.experiments
    ]
    return {
        "key": paper.key,
        "title": paper.title,
        "authors": list(paper.authors),
        "venue": paper.venue,
        "year": paper.year,
        "doi": paper.doi,
        "experiments": experiments,
        "causes": [
            {
                "claims": list(cause.claims),
                "text": cause.text,
                "evidence": [f"{experiment}:{change}" for experiment, change in cause.evidence],
            }
            for cause in paper.causes
        ],
    }


def _experiment(
    paper: Paper, experiment: Experiment, measured: Measured, figures: list[out.FigureOutcome]
) -> out.ExperimentOutcome:
    default = measured.of(paper, experiment.id)
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
        "claims": [_claim(paper, experiment, claim, measured) for claim in paper.claims_of(experiment.id)],
        "changes": _changes(paper, experiment, measured, default) if default else [],
    }


def _claim(paper: Paper, experiment: Experiment, claim: Claim, measured: Measured) -> out.ClaimOutcome:
    default = _judged(paper, claim, measured, DEFAULT)
    changed: dict[str, Judgement] = {}
    deciding: dict[str, Judgement] = {}
    for change in experiment.changes:
        if (paper.key, experiment.id, change.id) not in measured.samples:
            continue
        if change.claims and claim.id not in change.claims:
            continue
        changed[change.id] = _judged(paper, claim, measured, change.id)
        if change.kind == "variant":
            deciding[change.id] = changed[change.id]
    verdict, depends_on = decided(default, deciding)
    kinds = {change.id: change.kind for change in experiment.changes}
    return {
        "id": claim.id,
        "rank": claim.rank,
        "status": claim.status,
        "contradiction": claim.contradiction,
        "note": claim.note,
        "says": claim.says,
        "checked": wording.described(claim, experiment),
        "paper": wording.claimed(claim),
        "verdict": verdict.value,
        "default": default.verdict.value,
        "depends_on": list(depends_on),
        "parts": [out.part(part) for part in default.parts],
        "detail": default.detail,
        "sensitivity": [
            {
                "change": name,
                "kind": kinds[name],
                "verdict": judgement.verdict.value,
                "parts": [out.part(part) for part in judgement.parts],
                "decides": name in deciding,
            }
            for name, judgement in changed.items()
        ],
        "causes": [index for index, cause in enumerate(paper.causes) if claim.id in cause.claims],
    }


def _judged(paper: Paper, claim: Claim, measured: Measured, setting: str) -> Judgement:
    def grids(experiment: str, of: Measure) -> Grid:
        samples = measured.of(paper, experiment, setting)
        if samples is None or of not in samples.grids:
            raise LeftOutError(f"experiment {experiment} was not run")
        return samples.grids[of]

    return judge(claim, grids)


def _changes(paper: Paper, experiment: Experiment, measured: Measured, default: Samples) -> list[out.ChangeOutcome]:
    found: list[out.ChangeOutcome] = []
    for change in experiment.changes:
        samples = measured.samples.get((paper.key, experiment.id, change.id))
        if samples is None:
            continue
        what = [f"{name} = {expression}" for name, expression in change.schemes.items()]
        if change.less.set:
            what.append(wording.settings(change.less.set))
        found.append(
            {
                "id": change.id,
                "kind": change.kind,
                "about": change.about,
                "unknown": change.unknown,
                "what": ", ".join(what),
                "schemes": _scheme_changes(experiment.measure, default, samples),
            }
        )
    return found


def _scheme_changes(of: Measure, default: Samples, changed: Samples) -> list[out.SchemeChange]:
    """Means over the cells that both settings have, where the measure was taken in all of them."""
    if of not in default.grids or of not in changed.grids:
        return []
    found: list[out.SchemeChange] = []
    at = {axis.name: axis.values for axis in changed.setting.axes}
    for scheme in changed.setting.schemes:
        grids = default.grids[of], changed.grids[of]
        before, after = complete(*shared([(grid.seeds, grid.sample(scheme, at)) for grid in grids]))
        if before.size == 0:
            continue
        found.append(
            {
                "scheme": scheme,
                "default": out.number(estimate(lambda each: float(each.mean()), before)),
                "changed": out.number(estimate(lambda each: float(each.mean()), after)),
                "difference": out.number(estimate(percent_above, np.stack([after, before]))),
            }
        )
    return found
