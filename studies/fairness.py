"""Shares of a bottleneck that the two paths of a scheme share with an ordinary flow, beside the schemes' cards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import fmean

import anabranch
from anabranch.catalogue import Card
from anabranch.command.parser import Parser
from anabranch.command.status import FAILED
from anabranch.experiments.points import Bench, Trial
from anabranch.experiments.scenarios import resolved
from anabranch.statistics import jain_index, mean_interval
from studies.options import add_run_options, sweep_options

SCENARIO = Path(__file__).resolve().parents[1] / "scenarios" / "shared-bottleneck.toml"
SUBJECT, ORDINARY = "multipath", "single-path"
SEEDS, QUICK_SEEDS = 20, 3

UNCOUPLED, COUPLED = (1.6, 2.4), (0.7, 1.4)
"""Ranges of the goodput over that of the ordinary flow: two windows may take two shares, coupled ones about one."""
ALIKE = (0.9, 1.1)
"""Range of an ordinary flow beside another one, which shows that the scenario itself is fair."""


def main(arguments: list[str]) -> int:
    """Runs the study and returns its exit status."""
    parser = Parser(
        prog="studies fairness",
        description="Print the goodput of each scheme over that of an ordinary flow at one link. Status: 0 each is "
        "in its range or its card has the reason, 1 otherwise, 130 Ctrl-C.",
    )
    add_run_options(parser)
    options = parser.parse_args(arguments)
    cards = [card for card in anabranch.schemes().schemes if card.multipath or card.name == "sctp"]
    bench, seeds = Bench(sweep_options(options)), range(1, (QUICK_SEEDS if options.quick else SEEDS) + 1)
    trials = {card.name: trial_of(card.name) for card in cards}
    bench.run("fairness", trials.values(), seeds)
    wrong = 0
    for card in cards:
        goodputs = [figures.goodput_kbps for figures in bench.of(trials[card.name], seeds)]
        pairs = [(each[SUBJECT], each[ORDINARY]) for each in goodputs]
        ratios = [subject / ordinary for subject, ordinary in pairs]
        print(line(card, ratios, fmean(jain_index(pair) for pair in pairs)))
        if problem := complaint(card, fmean(ratios)):
            print(f"  {problem}")
            wrong += 1
    print(f"{len(cards)} schemes, {wrong} of them not as they should be")
    return FAILED if wrong else 0


def trial_of(scheme: str) -> Trial:
    """Returns the scenario with a scheme for the flow with two paths. The other flow has its own."""
    return Trial(scheme, resolved(SCENARIO, {f"flow.{SUBJECT}.scheme": scheme}), "sctp")


def line(card: Card, ratios: Sequence[float], index: float) -> str:
    """Returns the ratio with its 95 % interval, its range, and Jain's index."""
    low, high = expected(card)
    ratio = mean_interval(ratios)
    half_width = ratio.half_width if ratio.kind == "interval" else 0.0
    return f"{card.name:12} {ratio.mean:.2f} ± {half_width:.2f} of {low} to {high}, Jain {index:.3f}"


def expected(card: Card) -> tuple[float, float]:
    """Returns the range of ratios for a scheme."""
    if not card.multipath:
        return ALIKE
    return COUPLED if card.coupled else UNCOUPLED


def complaint(card: Card, mean: float) -> str:
    """Returns the contradiction between a mean ratio and the card, or nothing."""
    low, high = expected(card)
    is_fair = low <= mean <= high
    if is_fair and card.unfair_because:
        return "its card has a reason for an unequal share, but the share is equal"
    if not is_fair and not card.unfair_because:
        return "its share is unequal, and its card has no reason"
    return ""
