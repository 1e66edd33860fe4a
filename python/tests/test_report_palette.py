"""Colours of pages: readable on both papers."""

from __future__ import annotations

import pytest

from anabranch.figures.style import looks, path_looks
from anabranch.reporting.palette import DARK, LIGHT, MIN_CONTRAST, contrast, readable, style_of, variable

SERIES = [
    *(look.color for look in looks(["sctp", "cmt", "a-cmt", "cmt-dfr", "mptcp-ns2", "bonded", "cmt+rack"]).values()),
    *(look.color for look in path_looks([f"path-{place}" for place in range(8)]).values()),
]


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_every_series_stands_out_from_its_paper(palette: dict[str, str]) -> None:
    for colour in SERIES:
        assert contrast(readable(colour, palette["paper"], palette["ink"]), palette["paper"]) >= MIN_CONTRAST


@pytest.mark.parametrize("palette", [LIGHT, DARK], ids=["light", "dark"])
def test_text_stands_out_from_everything_it_is_on(palette: dict[str, str]) -> None:
    for ink in ("ink", "faint", "loud", "lost", "again", "link"):
        assert contrast(palette[ink], palette["paper"]) >= 4.5
        assert contrast(palette[ink], palette["panel"]) >= 4.5
    assert contrast(palette["ink"], palette["warn"]) >= 4.5


def test_contrast_goes_from_one_to_twenty_one() -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#777777", "#777777") == 1


def test_both_papers_name_the_same_colours() -> None:
    assert LIGHT.keys() == DARK.keys()


def test_a_style_has_each_series_on_both_papers() -> None:
    style = style_of(["#19388B", "#19388b"])
    assert style.count(variable("#19388b")) == 2
    assert "print" in style
