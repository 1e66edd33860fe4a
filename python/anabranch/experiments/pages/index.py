"""Page of a whole reproduction, `index.html`: figures, claims with their verdicts, and a filter of claims."""

from __future__ import annotations

import base64
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources

from markupsafe import Markup

from anabranch.experiments import outcome as out
from anabranch.experiments.claims.claim import RANKS
from anabranch.experiments.pages.document import inline_html
from anabranch.experiments.pages.experiment import (
    COLUMNS,
    about,
    causes_of,
    change_blocks,
    marks,
    ours,
    pictures_of,
    samples,
    sensitivity_blocks,
    table_of,
    under,
)
from anabranch.experiments.pages.readings import reading_blocks
from anabranch.experiments.pages.summary import (
    TITLE,
    Counts,
    chance_text,
    claims_of,
    counts_of,
    reference,
    scope_text,
    verdicts_of,
)
from anabranch.experiments.verdicts.grades import Verdict
from anabranch.html import templates


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """Claim with its verdict in the form of the template."""

    claim: out.ClaimOutcome
    verdict: Verdict
    ours: str
    samples: str
    marks: str
    under: Sequence[tuple[str, str]]
    causes: Sequence[out.CauseOutcome]


@dataclass(frozen=True, slots=True)
class FigureBox:
    """Figure with its picture, if there is one, its other files, and its table."""

    title: str
    picture: str
    files: Sequence[tuple[str, str]]
    table: Markup


@dataclass(frozen=True, slots=True)
class ExperimentSection:
    """Experiment. `more` contains the effects of its changes, each under a heading."""

    id: str
    experiment: out.ExperimentOutcome
    about: str
    figures: Sequence[FigureBox]
    claims: Sequence[ClaimRow]
    counts: Sequence[tuple[Verdict, int]]
    more: Sequence[tuple[str, Markup]]


@dataclass(frozen=True, slots=True)
class StudySection:
    """Study with its experiments."""

    study: out.StudyOutcome
    reference: str
    counts: Counts
    readings: Markup
    experiments: Sequence[ExperimentSection]


def index_page(outcome: out.Outcome) -> str:
    """Returns the page as HTML. Pictures are files beside it. It needs no network and works without its script.

    Its Content-Security-Policy allows this script only, so that text from a study's data is never run, even unescaped.
    """
    environment = templates("anabranch.experiments.pages", "index")
    environment.filters["inline"] = lambda text: Markup(inline_html(text))
    claims = claims_of(outcome["studies"])
    script = _file("filter.js")
    return environment.get_template("index.html").render(
        title=TITLE,
        scope=scope_text(outcome),
        claims=len(claims),
        counts=counts_of(claims),
        ranks=RANKS,
        ranked=[(rank, word, n) for rank, word in RANKS.items() if (n := sum(each["rank"] == rank for each in claims))],
        verdicts=[(each, sum(claim["verdict"] == each.value for claim in claims)) for each in verdicts_of(claims)],
        grades=list(Verdict),
        chance=chance_text(claims),
        studies=[_study(study) for study in outcome["studies"]],
        style=Markup(_file("index.css")),
        script=Markup(script),
        policy=_policy(script),
    )


def _file(name: str) -> str:
    return resources.files("anabranch.experiments.pages").joinpath("index", name).read_text(encoding="utf-8")


def _policy(script: str) -> str:
    known = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    return (
        f"default-src 'none'; script-src 'sha256-{known}'; style-src 'unsafe-inline'; img-src 'self' file:; "
        "base-uri 'none'; form-action 'none'"
    )


def _study(study: out.StudyOutcome) -> StudySection:
    experiments = [_experiment(study, experiment) for experiment in study["experiments"]]
    readings = Markup("\n".join(block.html() for block in reading_blocks(study)))
    return StudySection(study, reference(study), counts_of(claims_of([study])), readings, experiments)


def _experiment(study: out.StudyOutcome, experiment: out.ExperimentOutcome) -> ExperimentSection:
    folder = f"{study['key']}/{experiment['id']}/"
    found = Counter(claim["verdict"] for claim in experiment["claims"])
    more = {
        "Sensitivity of claims": sensitivity_blocks(experiment),
        "Effects of changes": change_blocks(experiment),
    }
    return ExperimentSection(
        id=f"{study['key']}-{experiment['id']}",
        experiment=experiment,
        about=about(experiment),
        figures=[_figure(experiment, figure, folder) for figure in experiment["figures"]],
        claims=[_claim(study, claim) for claim in experiment["claims"]],
        counts=[(verdict, found[verdict.value]) for verdict in verdicts_of(experiment["claims"])],
        more=[
            (title, Markup("\n".join(each.html() for each in listed)))
            for title, blocks in more.items()
            if (listed := list(blocks))
        ],
    )


def _figure(experiment: out.ExperimentOutcome, figure: out.FigureOutcome, folder: str) -> FigureBox:
    return FigureBox(
        title=figure["title"] or f"{experiment['id']}, {figure['name']}",
        picture=pictures_of(experiment, folder).get(figure["name"], ""),
        files=[(name, folder + name) for name in figure["files"] if not name.endswith(".svg")],
        table=Markup(table_of(figure["table"]).html() if figure["table"] else ""),
    )


def _claim(study: out.StudyOutcome, claim: out.ClaimOutcome) -> ClaimRow:
    return ClaimRow(
        claim=claim,
        verdict=next(verdict for verdict in Verdict if verdict.value == claim["verdict"]),
        ours=ours(claim["parts"], claim["detail"]),
        samples=samples(claim["parts"]),
        marks="; ".join(marks(claim)),
        under=[(title, found) for change, title in COLUMNS.items() if (found := under(claim, change))],
        causes=causes_of(study, claim),
    )
