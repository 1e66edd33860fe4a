"""Content of `index.html` of a reproduction."""

from __future__ import annotations

import re
from html.parser import HTMLParser

from papers_outcome import CAUSE, claim, every_verdict, experiment, outcome

from anabranch.experiments.pages.index import index_page
from anabranch.experiments.verdicts.grades import Verdict

VOID = {"meta", "img", "input", "link", "br"}


class Elements(HTMLParser):
    """Elements with their attributes. An element that is not closed properly is a fault."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.faults: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(tag)

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        return [
            attributes
            for name, attributes in self.found
            if name == tag and all(attributes.get(key.rstrip("_")) == value for key, value in wanted.items())
        ]


def test_the_page_is_sound_and_every_link_inside_it_leads_somewhere() -> None:
    page = Elements(index_page(every_verdict()))
    assert page.faults == []
    assert page.open == []
    places = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    assert len(set(places)) == len(places)
    inside = {target[1:] for each in page.all("a") if (target := each["href"] or "").startswith("#")}
    assert inside <= set(places)
    assert {"one", "one-fig1", "one-fig2", "two", "two-fig3", "two-fig4", "contents"} <= inside


def test_every_verdict_has_symbol_word_and_colours_of_the_table() -> None:
    page = index_page(every_verdict())
    for verdict in Verdict:
        assert f'grade-{verdict.key}"><span class="symbol" aria-hidden="true">{verdict.grade.symbol}</span>' in page
        light, dark = re.findall(rf"\.grade-{verdict.key} {{ --grade: (#\w+); }}", page)
        assert (light, dark) == (verdict.grade.light, verdict.grade.dark)


def test_verdicts_that_no_claim_got_are_no_choice() -> None:
    page = Elements(index_page(outcome([experiment("fig1", [claim("one", Verdict.DIFFERS, "S")])])))
    assert [each["value"] for each in page.all("input")] == ["differs", "S"]


def test_claim_has_verdict_and_rank_for_the_filter() -> None:
    page = Elements(index_page(every_verdict()))
    rows = [(each["data-verdict"], each["data-rank"]) for each in page.all("tbody", class_="claim")]
    assert rows[:3] == [("reproduced", "H"), ("about", "H"), ("direction-only", "S")]
    assert len(rows) == len(Verdict) + 2


def test_the_cause_of_a_verdict_is_folded_below_its_claim() -> None:
    page = index_page(every_verdict())
    (why,) = re.findall(r'<tr class="why">.*?</tr>', page, re.DOTALL)
    assert CAUSE.replace("`larger`", "<code>larger</code>") in why
    assert "Cause" in why.split("</summary>")[0]
    assert "<details>" in why
    assert "<code>fig1:change</code>" in why
    assert "<code>another</code>" in why


def test_marks_of_a_verdict_are_beside_it() -> None:
    claims = [claim("a", Verdict.CONTRADICTORY, "X", status="inconsistent", contradiction="I2", depends_on=["slow"])]
    assert "<small>inconsistent I2; depends on slow</small>" in index_page(outcome([experiment("fig1", claims)]))


def test_figures_have_a_picture_a_title_and_their_files() -> None:
    page = index_page(every_verdict())
    pictures = [each["src"] for each in Elements(page).all("img")]
    assert pictures == ["one/fig1/figure.svg", "one/fig2/figure.svg", "one/fig2/figure-2.svg", "two/fig3/figure.svg"]
    assert '<figcaption>fig2, figure-2: <a href="one/fig2/figure-2.csv">figure-2.csv</a></figcaption>' in page


def test_an_experiment_with_several_figures_is_as_wide_as_the_page() -> None:
    page = Elements(index_page(every_verdict()))
    assert [each["id"] for each in page.all("section", class_="experiment several")] == ["one-fig2"]


def test_text_from_the_data_of_a_paper_is_no_markup() -> None:
    bad = '<script>alert(1)</script> [x](javascript:alert(1)) [y](a.md"onclick="alert(1)) `<b>`'
    claims = [claim("a", Verdict.DIFFERS, says=bad, note=bad, paper=bad, depends_on=[bad])]
    made = outcome([experiment("fig1", claims, title=bad, note=bad, unknowns=[bad])])
    made["studies"][0]["title"] = bad
    page = Elements(index_page(made))
    assert len(page.all("script")) == 1
    assert page.all("b") == []
    assert not any(name.startswith("on") for _, attributes in page.found for name in attributes)
    assert not any("javascript" in (each["href"] or "") for each in page.all("a"))


def test_only_the_script_of_the_page_may_run() -> None:
    metas = Elements(index_page(every_verdict())).all("meta")
    (policy,) = [each for each in metas if each.get("http-equiv") == "Content-Security-Policy"]
    assert re.search(r"default-src 'none'; script-src 'sha256-[\w+/=]+';", policy["content"] or "")
