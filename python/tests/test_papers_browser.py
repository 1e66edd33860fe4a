"""Page of a reproduction, opened in headless Chromium from a file without network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from papers_outcome import every_verdict, write_page

from anabranch.experiments.verdicts.grades import Verdict

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_page(every_verdict(), tmp_path_factory.mktemp("page"))


@pytest.fixture
def page(browser: Browser, file: Path) -> Iterator[Page]:
    """Yields the page. Errors in the browser and requests beyond the folder fail the test."""
    faults: list[str] = []
    context = browser.new_context(viewport={"width": 1280, "height": 1000}, offline=True)
    made = context.new_page()
    made.on("console", lambda message: faults.append(message.text))
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("request", lambda request: faults.extend([request.url] * (not request.url.startswith("file:"))))
    made.goto(file.as_uri())
    yield made
    assert faults == []
    context.close()


def shown(page: Page) -> list[str]:
    """Returns the visible claims."""
    rows = [row for row in page.locator(".claim").all() if row.is_visible()]
    return [row.locator("code").first.inner_text() for row in rows]


def tick(page: Page, *values: str) -> None:
    for value in values:
        page.locator(f'#filter input[value="{value}"]').check()


def fragment(page: Page) -> str:
    return str(page.evaluate("location.hash"))


def ticked(page: Page) -> list[str]:
    return [str(box.get_attribute("value")) for box in page.locator("#filter input").all() if box.is_checked()]


def test_everything_is_shown_at_first(page: Page) -> None:
    assert shown(page) == [*[verdict.key for verdict in Verdict], "with-cause", "last"]
    assert page.locator("#filter output").inner_text() == f"{len(Verdict) + 2} of {len(Verdict) + 2} claims"
    assert fragment(page) == ""


def test_ticked_verdicts_and_ranks_are_both_met(page: Page) -> None:
    tick(page, "differs")
    assert shown(page) == ["differs", "with-cause"]
    tick(page, "S")
    assert shown(page) == ["with-cause"]
    tick(page, "direction-only")
    assert shown(page) == ["direction-only", "with-cause"]


def test_experiments_papers_and_contents_without_a_match_go(page: Page) -> None:
    tick(page, "reproduced")
    assert shown(page) == ["reproduced", "last"]
    assert not page.locator("#one-fig2").is_visible()
    assert not page.locator('[data-of="one-fig2"]').is_visible()
    tick(page, "S")
    assert not page.locator("#one").is_visible()
    assert page.locator("#none").is_visible()
    page.get_by_role("button", name="Show all").click()
    assert page.locator("#two-fig4").is_visible()
    assert not page.locator("#none").is_visible()


def test_the_address_holds_what_is_ticked(page: Page, file: Path) -> None:
    tick(page, "differs", "cannot-tell", "S")
    assert fragment(page) == "#verdict=differs,cannot-tell&rank=S"
    page.reload()
    assert ticked(page) == ["differs", "cannot-tell", "S"]
    assert shown(page) == ["with-cause"]
    page.goto(f"{file.as_uri()}#rank=X&verdict=nonsense")
    assert ticked(page) == ["X"]


def test_a_link_of_the_contents_keeps_what_is_ticked(page: Page) -> None:
    tick(page, "reproduced")
    page.locator('nav a[href="#two-fig3"]').click()
    assert fragment(page) == "#verdict=reproduced&at=two-fig3"
    assert page.evaluate("document.getElementById('two-fig3').getBoundingClientRect().top < innerHeight")
    page.go_back()
    assert ticked(page) == ["reproduced"]


def test_a_plain_link_to_an_experiment_works(page: Page, file: Path) -> None:
    page.set_viewport_size({"width": 1280, "height": 300})
    page.goto(f"{file.as_uri()}#two-fig3")
    assert page.evaluate("scrollY") > 0
    assert ticked(page) == []


def test_a_click_opens_the_cause(page: Page) -> None:
    cause = page.get_by_text("Windows are larger here.")
    assert not cause.is_visible()
    page.locator(".why summary").click()
    assert cause.is_visible()


def columns(page: Page, boxes: str) -> list[int]:
    """Returns the number of boxes in each row."""
    tops = [round(box.bounding_box()["y"]) for box in page.locator(boxes).all() if box.is_visible()]
    return [tops.count(top) for top in dict.fromkeys(tops)]


def test_figures_stand_two_in_a_row_where_there_is_room(page: Page) -> None:
    assert columns(page, "#one-fig2 figure") == [2]
    assert columns(page, "#two .experiment") == [2]
    for image in page.locator("#one figure img").all():
        assert image.bounding_box()["width"] >= 480
    page.set_viewport_size({"width": 800, "height": 1000})
    assert columns(page, "#one-fig2 figure") == [1, 1]
    assert columns(page, "#two .experiment") == [1, 1]


def test_a_phone_scrolls_tables_and_not_the_page(page: Page) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    page.locator(".why summary").click()
    page.locator(".why p").first.evaluate("text => { text.style.minHeight = '1000px'; }")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    scrolled = page.evaluate("[...document.querySelectorAll('.wide')].some(box => box.scrollWidth > box.clientWidth)")
    assert scrolled
    assert page.evaluate("[...document.querySelectorAll('.wide')].every(box => box.scrollHeight <= box.clientHeight)")
    assert page.get_by_text("Windows are larger here.").bounding_box()["width"] <= 390


@pytest.mark.parametrize(("choice", "filtered"), [("light", "none"), ("dark", "invert(0.91) hue-rotate(180deg)")])
def test_figures_are_as_light_or_dark_as_the_page(page: Page, choice: Any, filtered: str) -> None:
    page.emulate_media(color_scheme=choice)
    assert page.locator("figure img").first.evaluate("image => getComputedStyle(image).filter") == filtered
    colour = page.locator(".verdict").first.evaluate("badge => getComputedStyle(badge).color")
    wanted = getattr(Verdict.REPRODUCED.grade, choice)
    assert colour == f"rgb({', '.join(str(int(wanted[at : at + 2], 16)) for at in (1, 3, 5))})"
