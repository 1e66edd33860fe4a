"""What became of the verdicts that claims had by the rules before these.

`earlier.json` holds the last full run that was judged by them: its date, its commit, and the verdict on each claim.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib import resources
from typing import TypedDict

from anabranch.papers import outcome as out
from anabranch.papers.pages.document import Block, Paragraph, Table
from anabranch.papers.verdicts.grades import Verdict

NEW = "not there before"
GONE = "no longer there"


class Earlier(TypedDict):
    """A full run by the rules before these."""

    date: str
    commit: str
    verdicts: dict[str, str]


def earlier() -> Earlier:
    """The stored run."""
    text = resources.files("anabranch.papers.pages").joinpath("earlier.json").read_text(encoding="utf-8")
    stored: Earlier = json.loads(text)
    return stored


def stored_blocks(stored: Earlier) -> Iterator[Block]:
    """The stored counts, as long as no full run was judged by today's rules."""
    counted = Counter(stored["verdicts"].values())
    names = [verdict.value for verdict in Verdict if counted[verdict.value]]
    yield Paragraph(f"{_judged(stored)} The next full run puts beside it what became of them.")
    row = [str(counted[name]) for name in names] + [str(counted.total())]
    yield Table([*names, "all"], [row], frozenset(range(len(names) + 1)))


def became_blocks(stored: Earlier, claims: Sequence[out.ClaimOutcome], date: str, commit: str) -> Iterator[Block]:
    """A row for each verdict of the stored run, a column for each of today's."""
    now = {claim["id"]: claim["verdict"] for claim in claims}
    pairs = Counter(
        (stored["verdicts"].get(claim, NEW), now.get(claim, GONE))
        for claim in dict.fromkeys([*stored["verdicts"], *now])
    )
    before = [name for name in [*(verdict.value for verdict in Verdict), NEW] if any(old == name for old, _ in pairs)]
    after = [verdict.value for verdict in Verdict] + ([GONE] if any(new == GONE for _, new in pairs) else [])
    rows = [[name, *_cells([pairs[name, new] for new in after])] for name in before]
    sums = [sum(pairs[old, new] for old in before) for new in after]
    yield Paragraph(
        f"{_judged(stored)} Columns: the run of {date}, commit `{commit[:12]}`, by the rules above. What changed in "
        "the code between these commits moves claims as well."
    )
    yield Table(["before", *after, "all"], [*rows, ["all", *_cells(sums)]], frozenset(range(1, len(after) + 2)))


def counts_sentences(claims: Sequence[out.ClaimOutcome], stored: Earlier) -> str:
    """How many claims got each verdict, now and by the earlier rules, in words."""
    now = Counter(claim["verdict"] for claim in claims)
    headlines = Counter(claim["verdict"] for claim in claims if claim["rank"] == "H")
    before = Counter(stored["verdicts"].values())
    return (
        f"Verdicts on their {now.total()} claims: {_in_words(now)}. Of the {headlines.total()} headline claims: "
        f"{_in_words(headlines)}. By the earlier, wider rules the run of {stored['date']} had: {_in_words(before)}."
    )


def _in_words(counted: Counter[str]) -> str:
    """Every grade, the empty ones as well."""
    return ", ".join(f"{counted[verdict.value]} {verdict.value}" for verdict in Verdict)


def _judged(stored: Earlier) -> str:
    return f"Verdicts by the earlier rules, of the full run of {stored['date']}, commit `{stored['commit']}`."


def _cells(numbers: Sequence[int]) -> list[str]:
    return [*map(str, numbers), str(sum(numbers))]
