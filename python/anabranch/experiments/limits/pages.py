"""Tables of checks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median

from anabranch.counting import counted
from anabranch.experiments.limits.outcome import CheckOutcome, Finding, Plan
from anabranch.experiments.limits.rules import Verdict
from anabranch.experiments.pages.document import Block, Folded, Heading, Items, Paragraph, Table

MAX_NOTES = 30
"""Number of points above which a table has no notes of single schemes: they are in the JSON."""


def summary_table(outcomes: Sequence[CheckOutcome]) -> Table:
    """Returns a row for each check and scheme."""
    header = ["check", "scheme", "verdict", "settings", "mean at the limit", "broken", "undecided", "median", "worst"]
    rows = [
        [
            each.check,
            f"`{each.scheme}`",
            each.verdict.value,
            str(len(each.findings)),
            str(sum(finding.reached for finding in each.findings)),
            str(each.count(Verdict.BROKEN)),
            str(each.count(Verdict.UNDECIDED)),
            _median(each.findings),
            f"{each.worst.judged.mean:.2f} {each.worst.setting}" if each.worst else "",
        ]
        for each in outcomes
    ]
    return Table(header, rows, frozenset({3, 4, 5, 6, 7}))


def _median(findings: Sequence[Finding]) -> str:
    """Returns an empty text if the findings have different limits, which may have different units."""
    if len({(each.low, each.high) for each in findings}) != 1:
        return ""
    return f"{median(each.judged.mean for each in findings):.2f}"


def limit_lines(outcomes: Sequence[CheckOutcome]) -> list[str]:
    """Returns the limit of each check, and its findings on all points together."""
    lines = []
    for own in by_check(outcomes).values():
        line = f"{own[0].check}: {own[0].title}: {own[0].limit}"
        said = [f"{each.scheme}: {'; '.join(part.text for part in each.overall)}" for each in own if each.overall]
        lines.append(". ".join([line, *said]) + ".")
    return lines


def by_check(outcomes: Sequence[CheckOutcome]) -> dict[str, list[CheckOutcome]]:
    """Returns the outcomes of all schemes for each check."""
    names = dict.fromkeys(each.check for each in outcomes)
    return {name: [each for each in outcomes if each.check == name] for name in names}


def detail_table(own: Sequence[CheckOutcome]) -> Table:
    """Returns a row for each point of a check, with a column for each scheme. Broken limits are bold.

    Limits have a column if they differ from point to point.
    """
    found = {(finding.setting, each.scheme): finding for each in own for finding in each.findings}
    columns: dict[str, list[str]] = {"setting": list(dict.fromkeys(setting for setting, _ in found))}
    settings = columns["setting"]
    limits = [next(found[at, each.scheme] for each in own if (at, each.scheme) in found) for at in settings]
    if len({(each.low, each.high) for each in limits}) > 1:
        columns["limit"] = [_limit(each) for each in limits]
    columns |= {f"`{each.scheme}`": [_cell(found.get((at, each.scheme))) for at in settings] for each in own}
    right = frozenset(range(1, len(columns)))
    notes = [_notes(at, own, found) for at in settings]
    if any(notes) and (len(settings) <= MAX_NOTES or not any("; " in note for note in notes)):
        columns["with"] = notes
    return Table(list(columns), list(zip(*columns.values(), strict=True)), right)


def _limit(finding: Finding) -> str:
    ends = {"≥": finding.low, "≤": finding.high}
    return " ".join(f"{sign} {end:g}" for sign, end in ends.items() if math.isfinite(end))


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return ""
    text = f"{finding.judged.mean:.2f}"
    if not math.isnan(finding.judged.upper):
        text += f" ± {finding.judged.upper - finding.judged.mean:.2f}"
    return f"**{text}**" if finding.judged.verdict is Verdict.BROKEN else text


def _notes(setting: str, own: Sequence[CheckOutcome], found: Mapping[tuple[str, str], Finding]) -> str:
    """Returns the note that all schemes share, or the note of each scheme."""
    notes = {each.scheme: found[setting, each.scheme].note for each in own if (setting, each.scheme) in found}
    if len(set(notes.values())) == 1:
        return next(iter(notes.values()))
    return "; ".join(f"{scheme}: {note}" for scheme, note in notes.items() if note)


def conditions(plan: Plan) -> str:
    """Returns seeds and duration in a line."""
    choosing = f", {len(plan.choosing)} others to select the schemes to compare with" if plan.choosing else ""
    return (
        f"{counted(len(plan.seeds), 'seed')} of {plan.duration_s:g} s{choosing}; "
        f"nothing is called kept below {plan.least_seeds} seeds"
    )


def blocks(plan: Plan, outcomes: Sequence[CheckOutcome], folded: bool = False) -> list[Block]:
    """Returns the outcome as blocks of a page, with the points of each check below a heading or folded."""
    parts: list[Block] = [summary_table(outcomes), Paragraph(conditions(plan) + "."), Items(limit_lines(outcomes))]
    for name, own in by_check(outcomes).items():
        table, title = detail_table(own), own[0].title
        if folded:
            parts.append(Folded(f"{name}: {title}, {counted(len(table.rows), 'setting')}", table))
        else:
            parts += [Heading(2, title), Paragraph("Means; the limit is broken where they are bold."), table]
    return parts
