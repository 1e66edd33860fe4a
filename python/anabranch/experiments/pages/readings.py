"""Settled questions of a study, and the figures under each other reading."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from anabranch.experiments import outcome as out
from anabranch.experiments.pages.document import HtmlBlock, Items, Paragraph, Table
from anabranch.experiments.verdicts.grades import Verdict

AS_REPRODUCED = "as reproduced"

_NEAR = (Verdict.REPRODUCED.value, Verdict.ABOUT.value)
_NOT_JUDGED = (Verdict.OPEN.value, Verdict.CONTRADICTORY.value)


def reading_blocks(study: out.StudyOutcome) -> Iterator[HtmlBlock]:
    """Yields the decided questions, and a table of readings by experiments. A study without them has no blocks."""
    if not study["decided"]:
        return
    yield Paragraph("**Decided from the texts.** No verdict depends on the other answers, which are *readings* below.")
    yield Items([f"`{question}`: {answer}" for question, answer in study["decided"].items()])
    readings = _readings(study)
    if not readings:
        return
    experiments = [each for each in study["experiments"] if any(each["id"] in found for found in readings.values())]
    verdicts = {AS_REPRODUCED: {each["id"]: _default(each) for each in experiments}, **readings}
    yield Paragraph(
        "**Claims under each reading.** Number of claims of each experiment with the verdict reproduced or about, and "
        "in brackets those with direction only. A reading without runs of an experiment has no entry."
    )
    rows = [
        [f"`{name}`" if name in readings else name, *[_cell(found.get(each["id"])) for each in experiments]]
        for name, found in verdicts.items()
    ]
    yield Table(["reading", *[each["id"] for each in experiments]], rows, frozenset(range(1, len(experiments) + 1)))
    yield Paragraph(_sentence(verdicts))


def _readings(study: out.StudyOutcome) -> dict[str, dict[str, list[str]]]:
    """Returns the verdicts under each reading, by experiment."""
    found: dict[str, dict[str, list[str]]] = {}
    for experiment in study["experiments"]:
        for change in experiment["changes"]:
            if change["kind"] == "reading" and (verdicts := _under(experiment, change["id"])):
                found.setdefault(change["id"], {})[experiment["id"]] = verdicts
    return found


def _default(experiment: out.ExperimentOutcome) -> list[str]:
    return _judged(claim["default"] for claim in experiment["claims"])


def _under(experiment: out.ExperimentOutcome, change: str) -> list[str]:
    found = [each for claim in experiment["claims"] for each in claim["sensitivity"] if each["change"] == change]
    return _judged(each["verdict"] for each in found)


def _judged(verdicts: Iterator[str] | list[str]) -> list[str]:
    return [verdict for verdict in verdicts if verdict not in _NOT_JUDGED]


def _near(verdicts: list[str]) -> int:
    return sum(verdict in _NEAR for verdict in verdicts)


def _cell(verdicts: list[str] | None) -> str:
    if verdicts is None:
        return ""
    directions = sum(verdict == Verdict.DIRECTION_ONLY.value for verdict in verdicts)
    more = f" (+{directions})" if directions else ""
    return f"{_near(verdicts)}{more} of {len(verdicts)}"


def _sentence(verdicts: Mapping[str, Mapping[str, list[str]]]) -> str:
    """Returns a sentence about the readings that give all figures of their experiments."""
    whole = [name for name, found in verdicts.items() if all(_near(each) == len(each) for each in found.values())]
    if whole:
        return (
            f"All claims of the experiments that it was run for are reproduced or about right with: {', '.join(whole)}."
        )
    return "With no single reading are all claims of its experiments reproduced or about right."
