"""Pages of a whole reproduction: counts of verdicts by rank, and the claims of each experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from anabranch.experiments import outcome as out
from anabranch.experiments.claims.claim import RANKS
from anabranch.experiments.pages.document import Block, Heading, Link, Paragraph, Table
from anabranch.experiments.pages.experiment import claims_table
from anabranch.experiments.pages.readings import reading_blocks
from anabranch.experiments.verdicts.grades import Verdict
from anabranch.experiments.verdicts.multiplicity import misses

TITLE = "Experiments and verdicts"

_LEFT_OUT = {
    "variants": "Variants were omitted, so that no verdict shows a dependence on unknown values.",
    "ablations": "Ablations were omitted.",
}


def claims_of(studies: Iterable[out.StudyOutcome]) -> list[out.ClaimOutcome]:
    """Returns the claims of all experiments."""
    return [claim for study in studies for experiment in study["experiments"] for claim in experiment["claims"]]


def verdicts_of(claims: Iterable[out.ClaimOutcome]) -> list[Verdict]:
    """Returns the verdicts that occur, in the order of the table of grades."""
    found = {claim["verdict"] for claim in claims}
    return [verdict for verdict in Verdict if verdict.value in found]


@dataclass(frozen=True, slots=True)
class Counts:
    """Number of claims with each verdict: a row for each rank that occurs, by letter and word, and one for all."""

    verdicts: Sequence[Verdict]
    rows: Sequence[tuple[str, str, Sequence[int]]]


def counts_of(claims: Sequence[out.ClaimOutcome]) -> Counts:
    """Returns the counts of these claims."""
    verdicts = list(Verdict)
    counted = Counter((claim["rank"], claim["verdict"]) for claim in claims)
    rows = [(rank, word, [counted[rank, verdict.value] for verdict in verdicts]) for rank, word in RANKS.items()]
    sums = [sum(counted[rank, verdict.value] for rank in RANKS) for verdict in verdicts]
    return Counts(verdicts, [*[row for row in rows if sum(row[2])], ("", "all", sums)])


def counts_table(claims: Sequence[out.ClaimOutcome]) -> Table:
    """Returns a table with a row for each rank and a column for each verdict."""
    counts = counts_of(claims)
    rows = [
        [f"{rank} ({word})" if rank else word, *map(str, numbers), str(sum(numbers))]
        for rank, word, numbers in counts.rows
    ]
    names = [verdict.value for verdict in counts.verdicts]
    return Table(["rank", *names, "all"], rows, frozenset(range(1, len(names) + 2)))


def chance_text(claims: Sequence[out.ClaimOutcome]) -> str:
    """Returns a text about the number of intervals that miss the true value by chance."""
    resting = sum(any(part["ours"]["kind"] == "interval" for part in claim["parts"]) for claim in claims)
    expected = misses(resting)
    return (
        f"{resting} of the {len(claims)} claims rest on an interval of 95 %. Intervals contain the true value in 95 % "
        f"of all cases, so {expected.expected:.1f} are expected to miss it by chance: {expected.low} to "
        f"{expected.high} if claims were independent. The true range is wider, because claims share runs."
    )


def counts_text(outcome: out.Outcome) -> str:
    """Returns the counts as plain text for a terminal."""
    return counts_table(claims_of(outcome["studies"])).text()


def scope_text(outcome: out.Outcome) -> str:
    """Returns a text about omitted parts, empty if there are none."""
    scope = outcome["scope"]
    said = []
    if scope["quick"]:
        said.append("This is a quick run: fewer seeds and values, and neither variants nor ablations.")
    if scope["seeds"] is not None:
        said.append(f"The number of seeds was set to {scope['seeds']}.")
    # Outcomes of earlier versions lack this field.
    if scope.get("claims"):
        said.append("This run has only the data that verdicts need: no figures, no readings, and no ablations.")
    if scope.get("change"):
        said.append(f"This run has only the change `{scope['change']}`, and the runs that it is compared with.")
    if not scope["quick"]:
        said += [text for key, text in _LEFT_OUT.items() if not scope[key]]
    return " ".join(said)


def reference(study: out.StudyOutcome) -> str:
    """Returns authors, venue, year and DOI."""
    doi = f", doi:{study['doi']}" if study["doi"] else ""
    return f"{', '.join(study['authors'])}. {study['venue']}, {study['year']}{doi}."


def summary_blocks(outcome: out.Outcome) -> Iterator[Block]:
    """Yields the counts of all and of each study, and the claims of each experiment with a link to its page."""
    yield from _head(outcome)
    for study in outcome["studies"]:
        yield from _study_head(study)
        for experiment in study["experiments"]:
            place = f"{study['key']}/{experiment['id']}"
            yield Heading(3, place)
            yield Paragraph(Link(f"{experiment['title']} ({experiment['source']})", f"{place}/claims.md"))
            if experiment["claims"]:
                yield claims_table(experiment["claims"])


def _head(outcome: out.Outcome) -> Iterator[Block]:
    yield Heading(1, TITLE)
    if said := scope_text(outcome):
        yield Paragraph(said)
    claims = claims_of(outcome["studies"])
    yield counts_table(claims)
    yield Paragraph(chance_text(claims))


def _study_head(study: out.StudyOutcome) -> Iterator[Block]:
    yield Heading(2, f"{study['key']}: {study['title']}")
    yield Paragraph(reference(study))
    yield counts_table(claims_of([study]))
    yield from reading_blocks(study)
