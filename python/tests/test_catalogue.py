"""Cards of schemes and components."""

from __future__ import annotations

import dataclasses
import json

import pytest

import anabranch as ab
from anabranch import _native
from anabranch.catalogue import Card, Catalogue, schemes
from anabranch.errors import SchemeError
from anabranch.scenario import Path, RunSettings, Scenario


def plain(value: object) -> object:
    """Returns a card's values in the types of JSON."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def test_a_card_has_everything_that_the_native_one_has() -> None:
    native = json.loads(_native.cards())
    assert len(schemes()) == len(native) >= 30
    for card, expected in zip(schemes(), native, strict=True):
        shown = plain(card)
        assert isinstance(shown, dict)
        for key, value in expected.items():
            if key == "parameters":
                for parameter, from_native in zip(shown[key], value, strict=True):
                    assert {name: parameter[name] for name in from_native} == from_native
            else:
                assert shown[key] == value, (card.name, key)


def test_schemes_come_by_name_number_and_in_turn() -> None:
    catalogue = schemes()
    cmt = catalogue["cmt"]
    assert isinstance(cmt, Card)
    assert (cmt.kind, cmt.multipath, cmt.role) == ("scheme", True, None)
    assert catalogue[0].name == "sctp"
    assert [card.name for card in catalogue] == catalogue.names
    assert "cmt" in catalogue
    assert cmt in catalogue
    assert "cmt-fp" not in catalogue
    assert isinstance(catalogue[:3], Catalogue)
    assert len(catalogue[:3]) == 3


def test_schemes_and_components_are_distinguished() -> None:
    catalogue = schemes()
    assert len(catalogue.schemes) + len(catalogue.components) == len(catalogue)
    assert all(card.role and card.schemes for card in catalogue.components)
    assert catalogue.components["ecf"].role == "scheduler"
    assert "ecf" in catalogue["cmt"].components
    with pytest.raises(SchemeError):
        catalogue.schemes["ecf"]


def test_parameter_lists_its_valid_values() -> None:
    trigger = schemes()["cmt"].parameter("trigger")
    assert (trigger.kind, trigger.default, trigger.min, trigger.max) == ("count", 3, 1, 100)
    rtx = schemes()["cmt"].parameter("rtx")
    assert (rtx.kind, rtx.default) == ("choice", "rtx-cwnd")
    assert "rtx-asap" in rtx.choices
    with pytest.raises(SchemeError, match=r"cmt has no parameter `triger`; known: .*; did you mean `trigger`\?"):
        schemes()["cmt"].parameter("triger")


def test_an_unknown_name_is_an_error_with_the_nearest() -> None:
    with pytest.raises(SchemeError, match=r"unknown scheme or component `cmt-fp`; .*; did you mean `cmt-pf`\?"):
        schemes()["cmt-fp"]


def test_every_example_can_be_run() -> None:
    scenario = Scenario(
        run=RunSettings(duration="1 s"),
        paths=[Path(rate="1 Mbit/s", delay="1 ms"), Path(rate="1 Mbit/s", delay="1 ms")],
    )
    for card in schemes():
        assert _native.Prepared(scenario.to_toml(), card.example).scheme


def test_cards_are_shared_and_cannot_be_changed() -> None:
    assert schemes() is schemes()
    with pytest.raises(dataclasses.FrozenInstanceError):
        schemes()["cmt"].name = "mine"  # type: ignore[misc]
    assert isinstance(schemes()["cmt"].choices[0].parameters, tuple)
    hash(schemes()["cmt"])


def test_the_catalogue_is_shown_as_a_table() -> None:
    frame = schemes().to_pandas()
    assert frame["name"].tolist() == schemes().names
    assert frame.set_index("name").loc["cmt", "parameters"].split()[:2] == ["rtx", "trigger"]
    assert frame.set_index("name").loc["ecf", "role"] == "scheduler"
    html = schemes()._repr_html_()
    assert html.count("<tr") == len(schemes()) + 1
    assert "None" not in html
    assert "NaN" not in html
    assert repr(schemes()).startswith("<Catalogue sctp, naive-cmt, cmt,")
    assert (ab.schemes, ab.Card, ab.Catalogue) == (schemes, Card, Catalogue)
