"""Output of `papers list` and `papers show`."""

from __future__ import annotations

import math
import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable

from anabranch.counting import counted
from anabranch.experiments.claims.claim import RANKS, Claim
from anabranch.experiments.model import Change, Experiment, settings_text
from anabranch.experiments.study import Study

_INDENT = " " * 6


def list_studies(studies: Iterable[Study]) -> str:
    """Returns all studies with their experiments, a line for each."""
    return "\n\n".join("\n".join(_study_lines(study)) for study in studies)


def _study_lines(study: Study) -> list[str]:
    claims = Counter[str](claim.rank for claim in study.claims)
    ranks = ", ".join(f"{claims[rank]} {word}" for rank, word in RANKS.items() if claims[rank])
    first, *others = study.authors or ("",)
    authors = first + (" et al." if len(others) > 1 else f" and {others[0]}" if others else "")
    about = f"{authors}, {study.venue}, {study.year}; {counted(len(study.claims), 'claim')}: {ranks}"
    return [f"{study.key}  {study.title}", *_wrapped(about, "  "), *_experiment_lines(study)]


def _experiment_lines(study: Study) -> list[str]:
    width = max((len(experiment.id) for experiment in study.experiments), default=0)
    return [
        f"  {each.id:{width}}  {each.title} [{each.source}]: "
        f"{counted(len(study.claims_of(each.id)), 'claim')}, {runs_text(each)}"
        for each in study.experiments
    ]


def runs_text(experiment: Experiment) -> str:
    """Returns the number of runs of a full reproduction without variants and ablations."""
    if experiment.deferred:
        return "deferred"
    cells = len(experiment.schemes) * math.prod(len(axis.values) for axis in experiment.axes)
    counts = [
        (len(experiment.variants), "variant"),
        (len(experiment.readings), "reading"),
        (len(experiment.ablations), "ablation"),
    ]
    changes = [counted(number, word) for number, word in counts if number]
    return ", ".join([counted(cells * experiment.seeds, "run"), *changes])


def show_study(study: Study) -> str:
    """Returns a study with its description, schemes, conventions and experiments."""
    doi = f", doi:{study.doi}" if study.doi else ""
    lines = [study.title, *_wrapped(f"{', '.join(study.authors)}. {study.venue}, {study.year}{doi}")]
    lines += ["", "Schemes", *_pairs(study.schemes.items())]
    if study.conventions:
        lines += ["", "Conventions", *_pairs(study.conventions.items())]
    if study.decided:
        lines += ["", "Decided from the texts", *_pairs(study.decided.items())]
    lines += ["", "Experiments", *_experiment_lines(study)]
    lines += ["", *_wrapped(f"Each with: anabranch papers show {study.key}/{study.experiments[0].id}")]
    return "\n".join(lines)


def show_experiment(study: Study, experiment: Experiment) -> str:
    """Returns an experiment with its setting, unknown values, changes and claims."""
    lines = [f"{study.key}/{experiment.id}: {experiment.title}"]
    lines += [*_wrapped(f"{experiment.source} of {study.title!r}"), *_wrapped(experiment.note), ""]
    lines += _wrapped(f"Not run: {experiment.deferred}") if experiment.deferred else _setting(experiment)
    if experiment.unknowns:
        lines += ["", "Not known", *[f"  - {unknown}" for unknown in experiment.unknowns]]
    kinds = {"Variants": experiment.variants, "Readings": experiment.readings, "Ablations": experiment.ablations}
    for title, changes in kinds.items():
        if changes:
            lines += ["", title, *[line for change in changes for line in _change(change)]]
    claims = study.claims_of(experiment.id)
    lines += ["", counted(len(claims), "claim"), *[line for claim in claims for line in _claim(claim, experiment)]]
    return "\n".join(lines)


def _setting(experiment: Experiment) -> list[str]:
    pairs = [("scenario", str(experiment.scenario))]
    if experiment.overrides:
        pairs.append(("with", settings_text(experiment.overrides)))
    for key, (low, high) in experiment.draw.items():
        pairs.append(("drawn", f"{key} from {low:g} to {high:g}, evenly, again for each seed"))
    for axis in experiment.axes:
        keys = ", ".join(sorted({key for each in axis.settings for key in each}))
        pairs.append(("varied", f"{axis.label}: {', '.join(axis.labels)} ({axis.name}: {keys})"))
    schemes = [
        name if name == expression else f"{name} = {expression}" for name, expression in experiment.schemes.items()
    ]
    pairs += [
        ("schemes", ", ".join(schemes)),
        ("measure", str(experiment.measure)),
        ("runs", f"{experiment.seeds} seeds for each cell: {runs_text(experiment)}"),
        ("figures", ", ".join(f"{figure.name} ({figure.kind})" for figure in experiment.figures) or "none"),
    ]
    return _pairs(pairs)


def _change(change: Change) -> list[str]:
    question = change.unknown or change.decided
    head = f"{question}: {change}" if question else str(change)
    return [f"  {change.id}", *_wrapped(head, _INDENT), *_wrapped(change.about, _INDENT)]


def _claim(claim: Claim, experiment: Experiment) -> list[str]:
    status = "" if claim.status == "ok" else f", {claim.status} {claim.contradiction}".rstrip()
    texts = [claim.says, f"= {claim.statement.describe(experiment)}", claim.note]
    return [f"  {claim.id} ({claim.rank}{status})", *[line for text in texts for line in _wrapped(text, _INDENT)]]


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[str]:
    given = list(pairs)
    width = max((len(name) for name, _ in given), default=0)
    lines: list[str] = []
    for name, text in given:
        first, *rest = _wrapped(text, "", width + 4) or [""]
        lines += [f"  {name:{width}}  {first}", *[f"  {'':{width}}  {line}" for line in rest]]
    return lines


def _wrapped(text: str, indent: str = "", taken: int = 0) -> list[str]:
    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 120) - taken)
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
