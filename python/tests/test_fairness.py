"""The study fairness."""

from __future__ import annotations

import pytest
from studies import fairness
from studies.__main__ import main
from studies.fairness import complaint, line, trial_of

import anabranch
from anabranch.catalogue import Card


def card(name: str) -> Card:
    found = anabranch.schemes()[name]
    assert isinstance(found, Card)
    return found


@pytest.mark.parametrize(
    ("scheme", "fair", "unfair"), [("cmt", 2.0, 1.0), ("mptcp-lia", 1.0, 2.0), ("sctp", 1.0, 1.2), ("sctp", 1.0, 0.8)]
)
def test_coupled_schemes_may_take_one_share_and_others_two(scheme: str, fair: float, unfair: float) -> None:
    assert complaint(card(scheme), fair) == ""
    assert complaint(card(scheme), unfair) == "its share is unequal, and its card has no reason"


def test_card_that_explains_a_share_needs_an_unfair_share() -> None:
    assert complaint(card("cmt-dfr"), 7.5) == ""
    assert complaint(card("cmt-dfr"), 2.0) == "its card has a reason for an unequal share, but the share is equal"


def test_line_has_ratio_interval_range_and_index() -> None:
    assert line(card("cmt"), [2.0, 2.0, 2.3], 0.9) == "cmt          2.10 ± 0.43 of 1.6 to 2.4, Jain 0.900"


def test_scheme_runs_on_two_paths_beside_an_ordinary_flow() -> None:
    flows = {flow.name: flow for flow in anabranch.Scenario.parse(trial_of("braid").scenario).flows}
    assert {name: (flow.scheme, len(flow.paths or ())) for name, flow in flows.items()} == {
        "multipath": ("braid", 2),
        "single-path": ("sctp", 1),
    }


def test_scheme_outside_its_range_makes_the_study_fail(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = trial_of("sctp").scenario.replace('"120 s"', '"6 s"').replace('"20 s"', '"1 s"')
    assert text != trial_of("sctp").scenario
    monkeypatch.setattr(fairness, "trial_of", lambda scheme: fairness.Trial(scheme, text, "sctp"))
    # Every scheme is sctp here, so those that should take two shares take too little.
    assert main(["fairness", "--quick", "--no-cache", "--quiet"]) == 1
    shown = capsys.readouterr().out
    assert "its share is unequal, and its card has no reason" in shown
    assert f"{len([each for each in anabranch.schemes().schemes if each.multipath]) + 1} schemes, " in shown
