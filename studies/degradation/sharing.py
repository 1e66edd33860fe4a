"""Shares that a scheme leaves to other flows: beside them, among its own kind, and on free links."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import fmean

from anabranch.experiments.limits.outcome import CheckOutcome, Finding, Plan
from anabranch.experiments.points import Bench, Figures
from studies.alone import ratio
from studies.bounds.bound import PACKET_BYTES, USER_BYTES
from studies.degradation.neighbours import (
    FREE_PATH,
    OTHER_FLOWS,
    POLICED_KBPS,
    Bottleneck,
    beside,
    one_link_taken,
    policed,
    two_alike,
)
from studies.degradation.one_link import goodputs
from studies.degradation.setting import SUBJECT, Setting, share_of

SHARES = (0.8, 1.25)
MAX_DIFFERENCE = 0.10
MIN_OF_POLICED = 0.95
MAX_DROPPED = 0.03


def check_shares(links: Sequence[Bottleneck], others: Sequence[str], plan: Plan, bench: Bench) -> list[CheckOutcome]:
    """Checks shares beside one and four flows of one path on a shared link."""
    settings = [
        beside(link, other, count, plan.duration_s) for other in others for count in OTHER_FLOWS for link in links
    ]
    _run("share", settings, plan, bench)

    def finding(scheme: str, setting: Setting) -> Finding:
        shares = [_share(figures) for figures in bench.of(setting.trial(scheme), plan.seeds)]
        return plan.find(setting.name, shares, *SHARES)

    limit = f"{SHARES[0]:g} to {SHARES[1]:g} shares of the link"
    return plan.outcomes("share", "A share beside other flows", limit, settings, finding)


def _share(figures: Figures) -> float:
    others = [kbps for name, kbps in figures.goodput_kbps.items() if name != SUBJECT]
    return share_of(figures.goodput_kbps[SUBJECT], sum(others), len(others))


def check_two_alike(links: Sequence[Bottleneck], plan: Plan, bench: Bench) -> list[CheckOutcome]:
    """Checks that two flows of the scheme have equal goodput."""
    settings = [two_alike(link, plan.duration_s) for link in links]
    _run("two alike", settings, plan, bench)

    def finding(scheme: str, setting: Setting) -> Finding:
        differences = [difference(figures) for figures in bench.of(setting.trial(scheme), plan.seeds)]
        return plan.find(setting.name, differences, 0.0, MAX_DIFFERENCE)

    limit = f"goodputs after 30 s that differ by at most {100 * MAX_DIFFERENCE:g} % of their mean"
    return plan.outcomes("two-alike", "Two flows of the scheme", limit, settings, finding)


def difference(figures: Figures) -> float:
    """Returns the difference of the goodputs of two flows, relative to their mean."""
    first, second = figures.goodput_kbps.values()
    return abs(first - second) / fmean((first, second)) if first + second > 0 else 0.0


def check_free_link(others: Sequence[str], plan: Plan, bench: Bench) -> list[CheckOutcome]:
    """Checks a flow on one of two links: it has at least the scheme's goodput over the free link alone."""
    settings = [one_link_taken(other, plan.duration_s) for other in others]
    trials = [
        setting.trial(scheme, way) for scheme in plan.schemes for setting in settings for way in (None, FREE_PATH)
    ]
    bench.run("free link", trials, plan.seeds)

    def finding(scheme: str, setting: Setting) -> Finding:
        both, free = (goodputs(scheme, setting, way, plan.seeds, bench) for way in (None, FREE_PATH))
        ratios = [ratio(ours, one) for ours, one in zip(both, free, strict=True)]
        note = f"{fmean(both):.0f} kbit/s, the free link alone {fmean(free):.0f}"
        return plan.find(setting.name, ratios, 1.0, note=note)

    limit = "at least the goodput of the free link"
    return plan.outcomes("free-link", "Beside a flow on one of two links", limit, settings, finding)


def check_policer(plan: Plan, bench: Bench) -> list[CheckOutcome]:
    """Checks a policer: its rate is used, and little is dropped."""
    setting = policed(plan.duration_s)
    _run("policer", [setting], plan, bench)

    def findings(scheme: str) -> Iterator[Finding]:
        runs = bench.of(setting.trial(scheme), plan.seeds)
        allowed_kbps = POLICED_KBPS * USER_BYTES / PACKET_BYTES
        used = [figures.goodput_kbps[SUBJECT] / allowed_kbps for figures in runs]
        yield plan.find(f"{setting.name} goodput", used, MIN_OF_POLICED)
        yield plan.find(f"{setting.name} dropped", [dropped(figures) for figures in runs], 0.0, MAX_DROPPED)

    limit = f"at least {100 * MIN_OF_POLICED:g} % of the admitted rate, at most {100 * MAX_DROPPED:g} % dropped"
    return [CheckOutcome("policer", "A policer", limit, scheme, tuple(findings(scheme))) for scheme in plan.schemes]


def dropped(figures: Figures) -> float:
    """Returns the packets with DATA that links dropped, relative to those that were sent."""
    sent = sum(path.sent_packets for path in figures.paths.values())
    return sum(path.dropped_packets for path in figures.paths.values()) / max(sent, 1)


def _run(about: str, settings: Iterable[Setting], plan: Plan, bench: Bench) -> None:
    bench.run(about, [setting.trial(scheme) for scheme in plan.schemes for setting in settings], plan.seeds)
