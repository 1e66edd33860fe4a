"""Pages of the book about a full reproduction: a summary, and a chapter with pictures for each paper."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from anabranch.errors import ExperimentError
from anabranch.experiments import outcome as out
from anabranch.experiments.drawing.redraw import redraw
from anabranch.experiments.pages.document import Block, Heading, Image, Items, Paragraph, Table, markdown
from anabranch.experiments.pages.experiment import (
    experiment_blocks,
    further_columns,
    is_headline,
    ours_in_brief,
    verdict,
)
from anabranch.experiments.pages.readings import reading_blocks
from anabranch.experiments.pages.summary import (
    chance_text,
    claims_of,
    counts_table,
    reference,
    scope_text,
)
from anabranch.experiments.selection import read_key
from anabranch.experiments.stored import About, Stored, load
from anabranch.experiments.verdicts.grades import Verdict

TITLE = "The papers, reproduced"
PAGE = "reproduction.md"
FOLDER = "reproduction"

COUNTS_PICTURE = "figures/reproduction.svg"
"""Drawn by docs/figures/from_tables.py from the tables of the page."""

CHAPTERS = "<!-- reproduction: begin -->", "<!-- reproduction: end -->"
"""Marks in the book's summary between which the chapters are listed."""


def write_page(results: Path, book: Path) -> Path:
    """Writes the summary page of stored results into the sources of the book, and returns the written file.

    Raises `ExperimentError` if the results are not those of a full reproduction.
    """
    stored = _load_full(results)
    return _write(book / PAGE, markdown(list(page_blocks(stored.outcome, stored.about))))


def write_book(results: Path, book: Path, data: Path) -> list[Path]:
    """Writes summary page, chapters and pictures of stored results into the sources of the book, and returns the files.

    `data` is the folder with the papers. Raises `ExperimentError` if the file has no full reproduction,
    or the summary of the book no place for the chapters.
    """
    stored = _load_full(results)
    summary = book / "SUMMARY.md"
    listed = _write(summary, _between_marks(summary, CHAPTERS, _chapters(stored.outcome)))
    place = book / FOLDER
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    written = [listed, write_page(results, book)]
    for paper in stored.outcome["studies"]:
        pictures = _draw_pictures(paper, stored, data, place)
        written += pictures
        blocks = list(chapter_blocks(paper, {picture.name for picture in pictures}))
        written.append(_write(place / f"{paper['key']}.md", markdown(blocks)))
    return written


def _load_full(results: Path) -> Stored:
    """Reads stored results. Raises `ExperimentError` if a part of the experiments was left out."""
    stored = load(results)
    if said := scope_text(stored.outcome):
        raise ExperimentError(f"{results}: is not a full reproduction, which the book requires. {said}")
    return stored


def _chapters(outcome: out.Outcome) -> str:
    """Returns the lines of the book's summary about the chapters."""
    chapters = [f"  - [{paper['key']}]({FOLDER}/{paper['key']}.md)\n" for paper in outcome["studies"]]
    return f"\n- [{TITLE}]({PAGE})\n{''.join(chapters)}"


def _between_marks(file: Path, marks: tuple[str, str], between: str) -> str:
    """Returns the text of a file with new content between its marks."""
    begin, end = marks
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as error:
        raise ExperimentError(
            f"{file}: cannot be read: {error.strerror}: name the folder with the book's sources"
        ) from error
    marked = re.compile(rf"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not marked.search(text):
        raise ExperimentError(f"{file}: has no {begin} and {end}, between which a full reproduction writes")
    return marked.sub(lambda _: f"{begin}{between}{end}", text)


def _draw_pictures(paper: out.StudyOutcome, stored: Stored, data: Path, place: Path) -> list[Path]:
    """Draws the figures of a paper whose data is stored."""
    read = read_key(paper["key"], data)
    drawn = []
    for experiment in paper["experiments"]:
        for figure in experiment["figures"]:
            frame = stored.frames.get(f"{paper['key']}/{experiment['id']}/{figure['name']}")
            if frame is not None:
                file = place / _picture(paper, experiment, figure)
                drawn.append(redraw(read, experiment["id"], figure["name"], frame, file))
    return drawn


def _picture(paper: out.StudyOutcome, experiment: out.ExperimentOutcome, figure: out.FigureOutcome) -> str:
    return f"{paper['key']}-{experiment['id']}-{figure['name']}.svg"


def page_blocks(outcome: out.Outcome, about: About) -> Iterator[Block]:
    """Yields the summary page: version and date, counts, and the headline claims."""
    yield Heading(1, TITLE)
    yield Paragraph(_made(about))
    yield Paragraph("[The papers](papers.md) defines verdicts and measures.")
    yield Image(COUNTS_PICTURE, "Verdicts on the claims of the papers, by rank and by paper")
    claims = claims_of(outcome["studies"])
    yield counts_table(claims)
    yield _by_paper(outcome["studies"])
    yield Paragraph(chance_text(claims))
    yield Heading(2, "Headline claims")
    for paper in outcome["studies"]:
        yield Paragraph(f"**{paper['key']}**: {paper['title']}. {reference(paper)}")
        headlines = [claim for claim in claims_of([paper]) if is_headline(claim)]
        further = further_columns(headlines)
        rows = [(claim["says"], ours_in_brief(claim["parts"]), verdict(claim)) for claim in headlines]
        yield Table(
            ["claim", "ours", "verdict", *[title for title, _ in further]],
            [(*row, *[cells[index] for _, cells in further]) for index, row in enumerate(rows)],
        )


def _made(about: About) -> str:
    commit = f"commit `{about['commit'][:12]}`" if about["commit"] != "unknown" else "an unknown commit"
    runs = about["runs_computed"] + about["runs_cached"]
    return (
        f"Made by `anabranch papers reproduce all` on {about['date']} with version {about['version']}, {commit}: "
        f"{runs:,} runs. {_additions(about)}The built book (`make book`) has a chapter for each paper, with figures, "
        "all claims, their numbers in the paper and details of ours."
    )


def _additions(about: About) -> str:
    """Returns a sentence for each change whose results were added later."""
    return "".join(
        f"Results under the change `{change}` were added by `anabranch papers reproduce KEY --change {change}` on "
        f"{each['date']}: {each['runs']:,} runs. "
        for change, each in about.get("added", {}).items()
    )


def _by_paper(papers: Sequence[out.StudyOutcome]) -> Table:
    """Returns a table with a row for each paper and a column for each verdict."""
    rows = []
    for paper in papers:
        claims = claims_of([paper])
        counted = [sum(claim["verdict"] == verdict.value for claim in claims) for verdict in Verdict]
        rows.append([paper["key"], *map(str, counted), str(len(claims))])
    header = ["paper", *[verdict.value for verdict in Verdict], "all"]
    return Table(header, rows, frozenset(range(1, len(header))))


def chapter_blocks(paper: out.StudyOutcome, pictures: set[str]) -> Iterator[Block]:
    """Yields the chapter of a paper: every experiment with its existing pictures."""
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
