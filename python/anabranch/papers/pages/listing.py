"""What `papers list` and `papers show` print."""

from __future__ import annotations

import shutil
import textwrap
from collections import Counter
from collections.abc import Iterable

from anabranch.papers.claim import Claim
from anabranch.papers.model import Change, Experiment, Paper
from anabranch.papers.pages import wording


def list_papers(papers: Iterable[Paper]) -> str:
    """All papers with their experiments, a line for each."""
    return "\n\n".join(_paper_lines(paper) for paper in papers)


def _paper_lines(paper: Paper) -> str:
    claims: Counter[str] = Counter(claim.rank for claim in paper.claims)
    head = f"{paper.key}  {paper.title}"
    about = f"{_authors(paper)}, {paper.venue}, {paper.year}; {_count(len(paper.claims), 'claim')}: {_ranks(claims)}"
    width = max((len(experiment.id) for experiment in paper.experiments), default=0)
    lines = [_experiment_line(paper, experiment, width) for experiment in paper.experiments]
    return "\n".join([head, *_wrapped(about, "  "), *lines])


def _experiment_line(paper: Paper, experiment: Experiment, width: int) -> str:
    claims = paper.claims_of(experiment.id)
    counted = f"{_count(len(claims), 'claim')}, {runs_text(experiment)}"
    return f"  {experiment.id:{width}}  {experiment.title} [{experiment.source}]: {counted}"


def _authors(paper: Paper) -> str:
    return (
        paper.authors[0] + (" et al." if len(paper.authors) > 2 else f" and {paper.authors[1]}")
        if len(paper.authors) > 1
        else "".join(paper.authors)
    )


def _ranks(claims: Counter[str]) -> str:
    return ", ".join(f"{claims[rank]} {word}" for rank, word in wording.RANKS.items() if claims[rank])


def _count(number: int, word: str) -> str:
    return f"{number} {word}{'' if number == 1 else 's'}"


def runs_text(experiment: Experiment) -> str:
    """How many runs a full reproduction makes, without variants and ablations."""
    if experiment.deferred:
        return "deferred"
    cells = len(experiment.schemes)
    for axis in experiment.axes:
        cells *= len(axis.values)
    text = _count(cells * experiment.seeds, "run")
    if experiment.variants:
        text += f", {_count(len(experiment.variants), 'variant')}"
    if experiment.ablations:
        text += f", {_count(len(experiment.ablations), 'ablation')}"
    return text


def show_paper(paper: Paper) -> str:
    """A paper: what it is, its schemes and conventions, and its experiments."""
    doi = f", doi:{paper.doi}" if paper.doi else ""
    lines = [
        paper.title,
        *_wrapped(f"{', '.join(paper.authors)}. {paper.venue}, {paper.year}{doi}", ""),
        "",
        "Schemes",
        *_pairs(paper.schemes.items()),
    ]
    if paper.conventions:
        lines += ["", "Conventions", *_pairs(paper.conventions.items())]
    width = max((len(experiment.id) for experiment in paper.experiments), default=0)
    lines += ["", "Experiments", *[_experiment_line(paper, each, width) for each in paper.experiments]]
    lines += ["", *_wrapped(f"Each with: anabranch papers show {paper.key}/{paper.experiments[0].id}", "")]
    return "\n".join(lines)


def show_experiment(paper: Paper, experiment: Experiment) -> str:
    """An experiment: its setting, what is unknown about it, what is changed in it, and its claims."""
    lines = [
        f"{paper.key}/{experiment.id}: {experiment.title}",
        *_wrapped(f"{experiment.source} of {paper.title!r}", ""),
        *_wrapped(experiment.note, ""),
    ]
    lines += _deferred(experiment) if experiment.deferred else _setting(experiment)
    if experiment.unknowns:
        lines += ["", "Not known from the paper", *[f"  - {unknown}" for unknown in experiment.unknowns]]
    for title, changes in (("Variants", experiment.variants), ("Ablations", experiment.ablations)):
        if changes:
            lines += ["", title, *[line for change in changes for line in _change(change)]]
    claims = paper.claims_of(experiment.id)
    lines += ["", _count(len(claims), "claim").capitalize()]
    lines += [line for claim in claims for line in _claim(claim, experiment)]
    return "\n".join(lines)


def _deferred(experiment: Experiment) -> list[str]:
    return ["", *_wrapped(f"Not run: {experiment.deferred}", "")]


def _setting(experiment: Experiment) -> list[str]:
    pairs = [("scenario", str(experiment.scenario))]
    if experiment.set:
        pairs.append(("with", wording.settings(experiment.set)))
    for key, (low, high) in experiment.draw.items():
        pairs.append(("drawn", f"{key} from {low:g} to {high:g}, evenly, anew for each seed"))
    for axis in experiment.axes:
        keys = ", ".join(sorted({key for each in axis.settings for key in each}))
        pairs.append(("varied", f"{axis.label}: {', '.join(axis.labels)} ({axis.name}: {keys})"))
    schemes = ", ".join(
        name if name == expression else f"{name} = {expression}" for name, expression in experiment.schemes.items()
    )
    pairs += [
        ("schemes", schemes),
        ("measure", str(experiment.measure)),
        ("runs", f"{experiment.seeds} seeds for each cell: {runs_text(experiment)}"),
        ("figures", ", ".join(f"{figure.name} ({figure.kind})" for figure in experiment.figures) or "none"),
    ]
    return ["", *_pairs(pairs)]


def _change(change: Change) -> list[str]:
    what = [f"{name} = {expression}" for name, expression in change.schemes.items()]
    if change.less.set:
        what.append(wording.settings(change.less.set))
    head = f"{change.unknown}: {', '.join(what)}" if change.unknown else ", ".join(what)
    return [f"  {change.id}", *_wrapped(head, "      "), *_wrapped(change.about, "      ")]


def _claim(claim: Claim, experiment: Experiment) -> list[str]:
    marks: list[str] = [claim.rank]
    if claim.status != "ok":
        marks.append(claim.status + (f" {claim.contradiction}" if claim.contradiction else ""))
    lines = [f"  {claim.id} ({', '.join(marks)})", *_wrapped(claim.says, "      ")]
    lines += _wrapped(f"= {wording.described(claim, experiment)}", "      ")
    return lines + (_wrapped(claim.note, "      ") if claim.note else [])


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[str]:
    given = list(pairs)
    width = max((len(name) for name, _ in given), default=0)
    lines: list[str] = []
    for name, text in given:
        first, *rest = _wrapped(text, "", width + 4) or [""]
        lines += [f"  {name:{width}}  {first}", *[f"  {'':{width}}  {line}" for line in rest]]
    return lines


def _wrapped(text: str, indent: str, taken: int = 0) -> list[str]:
    width = max(40, min(shutil.get_terminal_size((100, 24)).columns, 120) - taken)
    return textwrap.wrap(text, width, initial_indent=indent, subsequent_indent=indent, break_long_words=False)
