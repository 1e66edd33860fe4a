"""Table of grades and its users."""

from __future__ import annotations

import re

import pytest
from book import BOOK

from anabranch.experiments.verdicts.finding import worst
from anabranch.experiments.verdicts.grades import Direction, Verdict


def test_verdicts_differ_without_colours() -> None:
    assert len({verdict.grade.symbol for verdict in Verdict}) == len(Verdict)
    assert len({verdict.key for verdict in Verdict}) == len(Verdict)
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)*", verdict.key) for verdict in Verdict)


def luminance(colour: str) -> float:
    """Returns the relative luminance of WCAG 2."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("verdict", Verdict)
@pytest.mark.parametrize(("kind", "page"), [("light", "#f5f7f9"), ("dark", "#1d232a")])
def test_every_colour_can_be_read_on_its_page(verdict: Verdict, kind: str, page: str) -> None:
    low, high = sorted([luminance(getattr(verdict.grade, kind)), luminance(page)])
    assert (high + 0.05) / (low + 0.05) >= 4.5


def test_a_claim_of_several_parts_is_as_good_as_the_worst_of_them() -> None:
    ordered = [
        Verdict.REPRODUCED,
        Verdict.ABOUT,
        Verdict.DIRECTION_ONLY,
        Verdict.CANNOT_TELL,
        Verdict.DIFFERS,
    ]
    for place, verdict in enumerate(ordered):
        assert worst(ordered[: place + 1]) is verdict
    severities = [verdict.grade.severity for verdict in Verdict if verdict.grade.severity is not None]
    assert len(set(severities)) == len(severities)


def test_verdict_of_a_whole_claim_is_invalid_for_a_part() -> None:
    with pytest.raises(ValueError, match="not a verdict on a part"):
        worst([Verdict.REPRODUCED, Verdict.OPEN])


def test_settled_claims_have_no_direction() -> None:
    settled = [verdict for verdict in Verdict if verdict.grade.settled]
    assert settled
    assert {verdict.grade.direction for verdict in settled} == {Direction.UNCLEAR}


def test_the_book_has_the_table_of_grades() -> None:
    text = (BOOK / "papers.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text.split("| verdict | when |")[1].split("\n\n")[0], re.M))
    rows.pop("---")
    assert rows == {verdict.value: verdict.grade.when for verdict in Verdict}
