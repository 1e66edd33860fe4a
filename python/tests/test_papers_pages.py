"""Statements of the pages about verdicts: counts, chance, widths, and the standard."""

from __future__ import annotations

from typing import Any

from book import BOOK
from papers_outcome import claim, every_verdict, experiment, outcome

from anabranch.experiments import outcome as out
from anabranch.experiments.model import RADIO, STANDARD
from anabranch.experiments.pages.document import Table, markdown
from anabranch.experiments.pages.experiment import claims_table, ours
from anabranch.experiments.pages.index import index_page
from anabranch.experiments.pages.readings import reading_blocks
from anabranch.experiments.pages.summary import chance_text, claims_of, counts_table
from anabranch.experiments.verdicts.grades import Verdict
from anabranch.experiments.verdicts.multiplicity import misses
from anabranch.papers.catalogue import keys, read_key


def rows(table: Table) -> list[list[str]]:
    return [list(map(str, row)) for row in table.rows]


def test_counts_have_a_column_for_every_verdict_even_if_no_claim_got_it() -> None:
    table = counts_table([claim("one", Verdict.ABOUT)])
    assert list(table.header) == ["rank", *[verdict.value for verdict in Verdict], "all"]
    assert rows(table)[-1] == ["all", "0", "1", "0", "0", "0", "0", "0", "1"]


def under(verdict: Verdict) -> list[out.Sensitivity]:
    return [{"change": STANDARD, "kind": "ablation", "verdict": verdict.value, "parts": [], "decides": False}]


def test_headline_claims_have_their_verdict_under_the_standard() -> None:
    claims = [
        claim("holds", Verdict.REPRODUCED, sensitivity=under(Verdict.DIFFERS)),
        claim("alone", Verdict.REPRODUCED),
        claim("weak", Verdict.REPRODUCED, "W", sensitivity=under(Verdict.DIFFERS)),
    ]
    table = claims_table(claims)
    assert table.header[-1] == "under RFC 9260"
    assert [row[-1] for row in rows(table)] == ["differs", "not run", ""]
    assert "under RFC 9260" not in claims_table(claims[2:]).header
    page = index_page(outcome([experiment("fig1", claims)]))
    assert page.count("<small>under RFC 9260: differs</small>") == 1
    assert page.count("<small>under RFC 9260: not run</small>") == 1


def test_claims_of_every_rank_have_their_verdict_on_radio_links() -> None:
    on_radio = under(Verdict.DIFFERS)
    on_radio[0]["change"] = RADIO
    claims = [claim("weak", Verdict.REPRODUCED, "W", sensitivity=on_radio), claim("alone", Verdict.REPRODUCED)]
    table = claims_table(claims)
    assert list(table.header[-2:]) == ["under RFC 9260", "on radio links"]
    assert [row[-1] for row in rows(table)] == ["differs", ""]
    assert "on radio links" not in claims_table(claims[1:]).header
    page = index_page(outcome([experiment("fig1", claims)]))
    assert page.count("<small>on radio links: differs</small>") == 1


def test_wide_interval_names_the_detectable_difference() -> None:
    wide = claim("wide", Verdict.CANNOT_TELL)
    wide["parts"][0] |= {"detectable": 3.21, "detail": "12 against 11"}  # type: ignore[typeddict-item]
    assert ours(wide["parts"]) == "+12.0 ± 1.0 % (12 against 11; detects 3.2 % or more)"
    assert ours(claim("narrow", Verdict.REPRODUCED)["parts"]) == "+12.0 ± 1.0 %"


def test_the_number_of_intervals_that_miss_by_chance_is_computed() -> None:
    text = chance_text(claims_of(every_verdict()["studies"]))
    assert text.startswith("9 of the 9 claims rest on an interval of 95 %.")
    assert "0.5 are expected to miss it by chance" in text
    exact: Any = claim("exact", Verdict.REPRODUCED)
    exact["parts"][0]["ours"]["kind"] = "deterministic"
    assert chance_text([exact]).startswith("0 of the 1 claims rest")


def test_the_book_says_how_many_of_all_claims_miss_by_chance() -> None:
    claims = sum(len(read_key(key).claims) for key in keys())
    found = misses(claims)
    text = (BOOK / "papers.md").read_text(encoding="utf-8")
    assert f"each of the {claims} claims, {found.expected:.0f} of them are expected" in text


def sensitivity(change: str, verdict: Verdict) -> out.Sensitivity:
    return {"change": change, "kind": "reading", "verdict": verdict.value, "parts": [], "decides": False}


def change(identity: str, kind: str = "reading") -> Any:
    return {"id": identity, "kind": kind, "about": "", "unknown": "", "decided": "room", "what": "", "schemes": []}


def test_a_table_says_which_reading_gives_which_figure() -> None:
    """Expects the first figure from `narrow` and the second from `wide`. `odd` was not run for the second."""
    first = claim("first", Verdict.REPRODUCED, sensitivity=[
        sensitivity("narrow", Verdict.ABOUT),
        sensitivity("wide", Verdict.DIRECTION_ONLY),
        sensitivity("odd", Verdict.DIFFERS),
    ])  # fmt: skip
    second = claim("second", Verdict.DIFFERS, sensitivity=[
        sensitivity("narrow", Verdict.DIFFERS),
        sensitivity("wide", Verdict.REPRODUCED),
    ])  # fmt: skip
    made = outcome(
        [
            experiment("fig7", [first], changes=[change("narrow"), change("wide"), change("odd")]),
            experiment("fig9", [second], changes=[change("narrow"), change("wide"), change("part", "ablation")]),
        ]
    )
    made["studies"][0]["decided"] = {"room": "The text says so."}
    text = markdown(list(reading_blocks(made["studies"][0])))
    assert "* `room`: The text says so." in text
    assert "| as reproduced | 1 of 1 | 0 of 1 |" in text
    assert "| `narrow` | 1 of 1 | 0 of 1 |" in text
    assert "| `wide` | 0 (+1) of 1 | 1 of 1 |" in text
    assert "| `odd` | 0 of 1 |  |" in text
    assert "`part`" not in text
    assert text.endswith("With no single reading are all claims of its experiments reproduced or about right.\n")


def test_a_reading_that_gives_all_figures_is_named() -> None:
    good = claim("one", Verdict.DIFFERS, sensitivity=[sensitivity("narrow", Verdict.ABOUT)])
    made = outcome([experiment("fig7", [good], changes=[change("narrow")])])
    made["studies"][0]["decided"] = {"room": "The text says so."}
    assert markdown(list(reading_blocks(made["studies"][0]))).endswith("are reproduced or about right with: narrow.\n")


def test_a_paper_without_decided_questions_has_no_such_table() -> None:
    assert list(reading_blocks(every_verdict()["studies"][0])) == []
