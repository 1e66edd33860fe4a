"""The pages of the book that a full reproduction makes: a summary, and a chapter for each paper."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypedDict

from anabranch.errors import PaperError
from anabranch.papers import outcome as out
from anabranch.papers.pages.document import Block, Heading, Image, Items, Link, Paragraph, Table, markdown
from anabranch.papers.pages.experiment import (
    STANDARD_COLUMN,
    experiment_blocks,
    is_headline,
    ours,
    under_standard,
    verdict,
)
from anabranch.papers.pages.readings import reading_blocks
from anabranch.papers.pages.summary import (
    TITLE,
    chance_text,
    claims_of,
    counts_table,
    reference,
    scope_text,
)
from anabranch.papers.verdicts.grades import Verdict
from anabranch.text_file import read_text

PAGE = "reproduction.md"
FOLDER = "reproduction"

COUNTS_PICTURE = "figures/reproduction.svg"
"""Drawn by docs/figures/from_tables.py from the tables of the page."""

LARGEST_PICTURE_BYTES = 200_000
"""Of pictures that go into the book; larger ones are only where the reproduction was written."""

CHAPTERS = "<!-- reproduction: begin -->", "<!-- reproduction: end -->"
"""Between them are the chapters in the book's summary."""


class About(TypedDict):
    """`run.json`: when and by what a reproduction was made."""

    version: str
    commit: str
    fingerprint: str
    date: str
    seconds: float
    runs_computed: int
    runs_cached: int
    packets: int


def write_book(folder: Path, book: Path) -> list[Path]:
    """Writes the pages of the reproduction in a folder into the sources of the book, and gives what was written.

    Raises `PaperError` if the folder holds no complete reproduction of everything, or the book has no place for it.
    """
    outcome: out.Outcome = _read(folder, out.VERDICTS_FILE)
    about: About = _read(folder, out.RUN_FILE)
    if outcome["format"] != out.FORMAT:
        raise PaperError(f"{folder / out.VERDICTS_FILE}: is of format `{outcome['format']}`; reproduce it again")
    if said := scope_text(outcome):
        raise PaperError(f"{folder}: is not a full reproduction, as the book has to have it. {said}")
    summary = book / "SUMMARY.md"
    written = [_write(summary, _between_marks(summary, CHAPTERS, _chapters(outcome)))]
    place = book / FOLDER
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    written.append(_write(book / PAGE, markdown(list(page_blocks(outcome, about)))))
    for paper in outcome["papers"]:
        pictures = _copy_pictures(paper, folder, place)
        written += pictures
        blocks = list(chapter_blocks(paper, {picture.name for picture in pictures}))
        written.append(_write(place / f"{paper['key']}.md", markdown(blocks)))
    verdicts = {claim["id"]: claim["verdict"] for claim in claims_of(outcome["papers"])}
    written.append(_write(place / out.VERDICTS_FILE, json.dumps(verdicts, indent=1) + "\n"))
    return written


def _read(folder: Path, name: str) -> Any:
    try:
        return json.loads(read_text(folder / name))
    except (OSError, ValueError) as error:
        raise PaperError(
            f"{folder / name}: cannot be read ({error}): name the folder that `anabranch papers reproduce all` wrote"
        ) from error


def _chapters(outcome: out.Outcome) -> str:
    """The lines of the book's summary about the chapters."""
    chapters = [f"  - [{paper['key']}]({FOLDER}/{paper['key']}.md)\n" for paper in outcome["papers"]]
    return f"\n- [{TITLE}]({PAGE})\n{''.join(chapters)}"


def _between_marks(file: Path, marks: tuple[str, str], between: str) -> str:
    """The text of a file with something else between its marks."""
    begin, end = marks
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise PaperError(
            f"{file}: cannot be read: {error.strerror}: name the folder with the book's sources"
        ) from error
    marked = re.compile(rf"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not marked.search(text):
        raise PaperError(f"{file}: has no {begin} and {end}, between which a full reproduction writes")
    return marked.sub(lambda _: f"{begin}{between}{end}", text)


def _copy_pictures(paper: out.PaperOutcome, folder: Path, place: Path) -> list[Path]:
    copied = []
    for experiment in paper["experiments"]:
        for figure in experiment["figures"]:
            source = folder / paper["key"] / experiment["id"] / f"{figure['name']}.svg"
            if source.is_file() and source.stat().st_size <= LARGEST_PICTURE_BYTES:
                target = place / _picture(paper, experiment, figure)
                shutil.copyfile(source, target)
                copied.append(target)
    return copied


def _picture(paper: out.PaperOutcome, experiment: out.ExperimentOutcome, figure: out.FigureOutcome) -> str:
    return f"{paper['key']}-{experiment['id']}-{figure['name']}.svg"


def page_blocks(outcome: out.Outcome, about: About) -> Iterator[Block]:
    """The summary: by what it was made, counts, and the headline claims."""
    yield Heading(1, TITLE)
    yield Paragraph(_made(about))
    yield Paragraph(
        "[The papers](papers.md) says how verdicts are made, and what each measure is. No verdict here was written by "
        "hand."
    )
    yield Image(COUNTS_PICTURE, "Verdicts on the claims of the papers, by rank and by paper")
    claims = claims_of(outcome["papers"])
    yield counts_table(claims)
    yield _by_paper(outcome["papers"])
    yield Paragraph(chance_text(claims))
    yield Heading(2, "Headline claims")
    for paper in outcome["papers"]:
        yield Paragraph(f"**{paper['key']}**: {paper['title']}. {reference(paper)}")
        yield Table(
            ["claim", "paper", "ours", "verdict", STANDARD_COLUMN],
            [
                (
                    claim["says"],
                    claim["paper"],
                    ours(claim["parts"], claim["detail"]),
                    verdict(claim),
                    under_standard(claim),
                )
                for claim in claims_of([paper])
                if is_headline(claim)
            ],
        )


def _made(about: About) -> str:
    commit = f"commit `{about['commit'][:12]}`" if about["commit"] != "unknown" else "an unknown commit"
    runs = about["runs_computed"] + about["runs_cached"]
    return (
        f"Made by `anabranch papers reproduce all` on {about['date']} with version {about['version']}, {commit}: "
        f"{runs:,} runs. The same version gives the same figures again."
    )


def _by_paper(papers: Sequence[out.PaperOutcome]) -> Table:
    """A row for each paper, a column for each verdict."""
    rows: list[list[str | Link]] = []
    for paper in papers:
        claims = claims_of([paper])
        counted = [sum(claim["verdict"] == verdict.value for claim in claims) for verdict in Verdict]
        link = Link(paper["key"], f"{FOLDER}/{paper['key']}.md")
        rows.append([link, *map(str, counted), str(len(claims))])
    header = ["paper", *[verdict.value for verdict in Verdict], "all"]
    return Table(header, rows, frozenset(range(1, len(header))))


def chapter_blocks(paper: out.PaperOutcome, pictures: set[str]) -> Iterator[Block]:
    """The chapter of a paper: every experiment with those pictures that there are."""
    yield Heading(1, paper["key"])
    yield Paragraph(f"{paper['title']}. {reference(paper)}")
    yield counts_table(claims_of([paper]))
    yield from reading_blocks(paper)
    yield Items(
        [f"`{experiment['id']}`: {experiment['title']} ({experiment['source']})" for experiment in paper["experiments"]]
    )
    for experiment in paper["experiments"]:
        names = {
            figure["name"]: name
            for figure in experiment["figures"]
            if (name := _picture(paper, experiment, figure)) in pictures
        }
        yield from experiment_blocks(paper, experiment, 2, names)


def _write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path
