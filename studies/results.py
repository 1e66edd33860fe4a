"""Stored results of studies, and the tables that the book's chapters have of them.

    python -m studies.results docs/results out/book-src

A chapter has a comment at the place of each part, such as `<!-- results: bounds classes -->`. The tables themselves are
not in the repository.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from anabranch.command.status import FAILED, INPUT_ERROR
from anabranch.errors import AnabranchError, ExperimentError
from anabranch.experiments.limits.outcome import of_json
from anabranch.experiments.limits.pages import blocks, conditions
from anabranch.experiments.pages.document import Block, Paragraph, markdown
from studies.bounds.judging import class_table
from studies.bounds.points import read_points
from studies.stored import block_of, read_study

MARK = re.compile(r"^<!-- results: ([\w-]+) ([\w-]+) -->$", re.MULTILINE)


def parts_of(results: Path, name: str) -> dict[str, str]:
    """Returns the parts of the chapters that a study supplies, as Markdown.

    Raises `ExperimentError` if its results cannot be read.
    """
    content = read_study(results, name)
    try:
        parts = _ready(content) if "parts" in content else _OF_CHECKS[name](content)
    except (LookupError, TypeError, ValueError) as error:
        raise ExperimentError(f"{results / name}.json.xz: has other content ({error}): store it again") from error
    parts["made"] = [made(content["about"])]
    return {part: markdown(each).rstrip() for part, each in parts.items()}


def made(about: Mapping[str, Any]) -> Paragraph:
    """Returns date, version, commit and the number of runs, if it is stored, as text."""
    runs = about["runs_computed"] + about["runs_cached"]
    text = f"Made on {about['date']} with version {about['version']}, commit `{about['commit'][:12]}`"
    return Paragraph(f"{text}: {runs:,} runs." if runs else f"{text}.")


def _bounds(content: Mapping[str, Any]) -> dict[str, list[Block]]:
    plan, outcomes = of_json(content)
    classes: list[Block] = [class_table(read_points(), outcomes), Paragraph(f"{conditions(plan)}.")]
    return {"classes": classes, "checks": blocks(plan, outcomes, folded=True)}


def _degradation(content: Mapping[str, Any]) -> dict[str, list[Block]]:
    return {"checks": blocks(*of_json(content), folded=True)}


def _ready(content: Mapping[str, Any]) -> dict[str, list[Block]]:
    return {name: [block_of(each) for each in part] for name, part in content["parts"].items()}


_OF_CHECKS = {"bounds": _bounds, "degradation": _degradation}
STUDIES = (*_OF_CHECKS, "choice", "recorded", "arena", "forwarding")


def fill(text: str, parts: Mapping[str, Mapping[str, str]], page: str) -> str:
    """Replaces the comments of a page by the parts of studies. Raises `ExperimentError` for an unknown part."""

    def part(mark: re.Match[str]) -> str:
        name, wanted = mark.groups()
        if wanted not in parts.get(name, {}):
            known = ", ".join(f"{study} {each}" for study, own in parts.items() for each in own)
            raise ExperimentError(f"{page}: unknown results `{name} {wanted}`; choose one of: {known}")
        return parts[name][wanted]

    return MARK.sub(part, text)


def main(arguments: Sequence[str] | None = None) -> int:
    """Fills the pages of a folder, and returns the exit status."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    if len(words) != 2:
        print("name the folder of stored results and that of the pages", file=sys.stderr)
        return INPUT_ERROR
    results, folder = map(Path, words)
    try:
        parts = {name: parts_of(results, name) for name in STUDIES if (results / f"{name}.json.xz").exists()}
        for page in sorted(folder.rglob("*.md")):
            text = page.read_text(encoding="utf-8")
            if MARK.search(text):
                page.write_text(fill(text, parts, page.name), encoding="utf-8")
    except (AnabranchError, OSError) as error:
        print(error, file=sys.stderr)
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main())
