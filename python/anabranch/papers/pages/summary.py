"""The summary: how many claims of each rank came to what, and where to read on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from anabranch.papers import outcome as out
from anabranch.papers.pages.document import Block, Heading, Link, Paragraph, Table
from anabranch.papers.pages.experiment import claims_table, experiment_blocks
from anabranch.papers.pages.wording import RANKS
from anabranch.papers.verdicts.finding import Verdict

VERDICTS = [verdict.value for verdict in Verdict]

_SCOPE = {
    "quick": "This is a quick run: fewer seeds and values, and neither variants nor ablations.",
    "seeds": "The number of seeds was set to {value}.",
    "variants": "Variants were left out, so that no claim is said to depend on what is unknown.",
    "ablations": "Ablations were left out.",
}


def claims_of(papers: Iterable[out.PaperOutcome]) -> list[out.ClaimOutcome]:
    """All claims."""
    return [claim for paper in papers for experiment in paper["experiments"] for claim in experiment["claims"]]


def counts_table(claims: Sequence[out.ClaimOutcome]) -> Table:
    """A row for each rank, a column for each verdict."""
    counted = Counter((claim["rank"], claim["verdict"]) for claim in claims)
    present = [verdict for verdict in VERDICTS if any(counted[rank, verdict] for rank in RANKS)]
    rows = []
    for rank, word in RANKS.items():
        numbers = [counted[rank, verdict] for verdict in present]
        if sum(numbers):
            rows.append([f"{rank} ({word})", *[str(number or "") for number in numbers], str(sum(numbers))])
    sums = [sum(counted[rank, verdict] for rank in RANKS) for verdict in present]
    rows.append(["all", *[str(number) for number in sums], str(sum(sums))])
    return Table(["rank", *present, "all"], rows, frozenset(range(1, len(present) + 2)))


def counts_text(outcome: out.Outcome) -> str:
    """The counts as plain text, for a terminal."""
    table = counts_table(claims_of(outcome["papers"]))
    rows = [list(table.header), *[[str(cell) for cell in row] for row in table.rows]]
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if not column else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def scope_text(outcome: out.Outcome) -> str:
    """What was left out, if anything was."""
    scope = outcome["scope"]
    said = []
    if scope["quick"]:
        said.append(_SCOPE["quick"])
    if scope["seeds"] is not None:
        said.append(_SCOPE["seeds"].format(value=scope["seeds"]))
    if not scope["quick"]:
        said += [_SCOPE[key] for key in ("variants", "ablations") if not scope[key]]
    return " ".join(said)


def summary_blocks(outcome: out.Outcome, level: int = 1) -> Iterator[Block]:
    """Counts of all and of each paper, and all claims, without pictures."""
    yield Heading(level, "The papers, reproduced")
    if said := scope_text(outcome):
        yield Paragraph(said)
    yield counts_table(claims_of(outcome["papers"]))
    for paper in outcome["papers"]:
        yield from paper_blocks(paper, level + 1)


def paper_blocks(paper: out.PaperOutcome, level: int) -> Iterator[Block]:
    """A paper: its counts, and the claims of each experiment with a link to its page."""
    yield Heading(level, f"{paper['key']}: {paper['title']}")
    yield Paragraph(reference(paper))
    yield counts_table(claims_of([paper]))
    for experiment in paper["experiments"]:
        target = f"{paper['key']}/{experiment['id']}/claims.md"
        yield Heading(level + 1, f"{paper['key']}/{experiment['id']}")
        yield Paragraph(Link(f"{experiment['title']} ({experiment['source']})", target))
        if experiment["claims"]:
            yield claims_table(experiment["claims"])


def reference(paper: out.PaperOutcome) -> str:
    """Authors, venue, year and DOI."""
    doi = f", doi:{paper['doi']}" if paper["doi"] else ""
    return f"{', '.join(paper['authors'])}. {paper['venue']}, {paper['year']}{doi}."


def index_blocks(outcome: out.Outcome) -> Iterator[Block]:
    """One page with everything, pictures included."""
    yield Heading(1, "The papers, reproduced")
    if said := scope_text(outcome):
        yield Paragraph(said)
    yield counts_table(claims_of(outcome["papers"]))
    for paper in outcome["papers"]:
        yield Heading(2, f"{paper['key']}: {paper['title']}")
        yield Paragraph(reference(paper))
        yield counts_table(claims_of([paper]))
        for experiment in paper["experiments"]:
            yield from experiment_blocks(paper, experiment, 3, f"{paper['key']}/{experiment['id']}/")
