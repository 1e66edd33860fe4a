"""Tables of the study as text and Markdown, and everything as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import median
from typing import Any

from anabranch.counting import counted
from anabranch.experiments.pages.document import Table
from studies.bounds.pages import judged_json
from studies.degradation.outcome import CheckOutcome, Finding, Plan
from studies.trials.verdict import Verdict


def summary_table(outcomes: Sequence[CheckOutcome]) -> Table:
    """A row for each check and scheme."""
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
            _worst(each.worst),
        ]
        for each in outcomes
    ]
    return Table(header, rows, frozenset({3, 4, 5, 6, 7}))


def _median(findings: Sequence[Finding]) -> str:
    """None where findings have different limits: they are different figures, some of them in other units."""
    if len({(each.low, each.high) for each in findings}) != 1:
        return ""
    return f"{median(each.judged.mean for each in findings):.2f}"


def _worst(finding: Finding | None) -> str:
    return f"{finding.judged.mean:.2f} {finding.setting}" if finding else ""


def limit_lines(outcomes: Sequence[CheckOutcome]) -> list[str]:
    """What each check asks for, and what it says of all settings together."""
    lines = []
    for check in dict.fromkeys(each.check for each in outcomes):
        own = [each for each in outcomes if each.check == check]
        line = f"{check}: {own[0].title}: {own[0].limit}"
        said = [f"{each.scheme}: {'; '.join(part.text for part in each.overall)}" for each in own if each.overall]
        lines.append(". ".join([line, *said]) + ".")
    return lines


def detail_table(outcomes: Sequence[CheckOutcome], check: str) -> Table:
    """A row for each setting of a check, with a column for each scheme; broken ones are marked."""
    own = [each for each in outcomes if each.check == check]
    by_place = {(finding.setting, each.scheme): finding for each in own for finding in each.findings}
    settings = list(dict.fromkeys(setting for setting, _ in by_place))
    rows = [
        [setting, *(_cell(by_place.get((setting, each.scheme))) for each in own), _notes(setting, own, by_place)]
        for setting in settings
    ]
    header = ["setting", *(f"`{each.scheme}`" for each in own), "with"]
    if not any(row[-1] for row in rows) or len(rows) > MOST_NOTES:
        header, rows = header[:-1], [row[:-1] for row in rows]
    return Table(header, rows, frozenset(range(1, len(own) + 1)))


MOST_NOTES = 30
"""Settings above which a table has no notes: they are in the JSON."""


def _cell(finding: Finding | None) -> str:
    if finding is None:
        return ""
    text = f"{finding.judged.mean:.2f}"
    if not math.isnan(finding.judged.upper):
        text += f" ± {finding.judged.upper - finding.judged.mean:.2f}"
    return f"**{text}**" if finding.judged.verdict is Verdict.BROKEN else text


def _notes(setting: str, own: Sequence[CheckOutcome], by_place: dict[tuple[str, str], Finding]) -> str:
    found = [(each.scheme, by_place.get((setting, each.scheme))) for each in own]
    return "; ".join(f"{scheme}: {finding.note}" for scheme, finding in found if finding and finding.note)


def conditions(plan: Plan) -> str:
    """How it was run, in a line."""
    return (
        f"{counted(len(plan.seeds), 'seed')} of {plan.duration_s:g} s, "
        f"{len(plan.choosing)} others to choose what is compared "
        f"with; nothing is called kept below {plan.least_seeds} seeds"
    )


def document(plan: Plan, outcomes: Sequence[CheckOutcome]) -> str:
    """Everything in Markdown."""
    parts = [summary_table(outcomes).markdown(), conditions(plan) + "."]
    parts.append("\n".join(f"* {line}" for line in limit_lines(outcomes)))
    for check in dict.fromkeys(each.check for each in outcomes):
        title = next(each.title for each in outcomes if each.check == check)
        parts += [
            f"## {title}",
            "Means; the limit is broken where they are bold.",
            detail_table(outcomes, check).markdown(),
        ]
    return "\n\n".join(parts) + "\n"


def book_parts(plan: Plan, outcomes: Sequence[CheckOutcome]) -> dict[str, str]:
    """The tables of the book's page, those of single settings folded."""
    parts = [summary_table(outcomes).markdown(), conditions(plan) + "."]
    parts.append("\n".join(f"* {line}" for line in limit_lines(outcomes)))
    for check in dict.fromkeys(each.check for each in outcomes):
        title = next(each.title for each in outcomes if each.check == check)
        table = detail_table(outcomes, check)
        head = f"<details>\n<summary>{check}: {title}, {_settings(len(table.rows))}</summary>"
        parts.append(f"{head}\n\n{table.markdown()}\n\n</details>")
    return {"harm": "\n\n".join(parts)}


def _settings(count: int) -> str:
    return "1 setting" if count == 1 else f"{count} settings"


def as_json(plan: Plan, outcomes: Sequence[CheckOutcome]) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "seeds": list(plan.seeds),
        "choosing_seeds": list(plan.choosing),
        "duration_s": plan.duration_s,
        "checks": [
            {
                "check": each.check,
                "scheme": each.scheme,
                "limit": each.limit,
                "verdict": each.verdict.value,
                "overall": [
                    {"name": part.name, "verdict": part.verdict.value, "text": part.text} for part in each.overall
                ],
                "settings": [_finding_json(finding) for finding in each.findings],
            }
            for each in outcomes
        ],
    }


def _finding_json(finding: Finding) -> dict[str, Any]:
    ends = {name: end if math.isfinite(end) else None for name, end in (("low", finding.low), ("high", finding.high))}
    return {"setting": finding.setting, **ends, **judged_json(finding.judged), "note": finding.note}
