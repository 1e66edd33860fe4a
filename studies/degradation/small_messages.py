"""Small unordered messages on a stream of their own during a bulk transfer: how late are the slowest?"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from anabranch.experiments.limits.outcome import CheckOutcome, Finding, Plan
from anabranch.experiments.points import Bench
from studies.alone import ratio
from studies.degradation.setting import SUBJECT, Setting, Table, kbit, ms, poisson, run_table, subject

BASELINE = "cmt"
SHOWN_BESIDE = ("cmt", "bonded", "cmt+redundant")
"""Schemes whose delays are shown with those of each scheme."""

_MESSAGES: Table = {"size": "200 B", "interval": "20 ms", "ordered": False}
_WARMUP_S = 5.0


def settings(duration_s: float) -> list[Setting]:
    """Returns two links that are equal, different, lossy, or of which one has ten times the delay."""

    def link(rate_kbps: float, delay_ms: float, loss: float) -> Table:
        end = {"rate": kbit(rate_kbps), "delay": ms(delay_ms), "queue": "50 packets", "loss": loss}
        return {**end, "background": [poisson(rate_kbps / 50)]}

    cases = {
        "messages-even": (link(10_000, 20, 0), link(10_000, 20, 0)),
        "messages-uneven": (link(10_000, 20, 0.01), link(2000, 40, 0.01)),
        "messages-lossy": (link(10_000, 45, 0.01), link(10_000, 45, 0.05)),
        "messages-rtt-x10": (link(5000, 20, 0.001), link(5000, 200, 0.001)),
    }
    return [_setting(name, duration_s, links) for name, links in cases.items()]


def _setting(name: str, duration_s: float, links: Sequence[Table]) -> Setting:
    paths = [{"name": f"path-{at}", **link} for at, link in enumerate(links, 1)]
    names = [path["name"] for path in paths]
    table = {
        "run": run_table(duration_s, warmup=f"{_WARMUP_S:g} s"),
        "association": {"recv_buffer": "128 KiB"},
        "path": paths,
        "flow": [subject(names, messages=_MESSAGES)],
    }
    return Setting(name, table, tuple(names), uneven=True)


def check_messages(plan: Plan, bench: Bench) -> list[CheckOutcome]:
    """Compares each scheme with `cmt`."""
    places = settings(plan.duration_s)
    schemes = dict.fromkeys((*SHOWN_BESIDE, *plan.schemes))
    bench.run("messages", [place.trial(scheme) for scheme in schemes for place in places], plan.seeds)

    def finding(scheme: str, place: Setting) -> Finding:
        ours, base = (_p99_ms(each, place, plan, bench) for each in (scheme, BASELINE))
        ratios = [ratio(one, other) for one, other in zip(ours, base, strict=True)]
        runs = bench.of(place.trial(scheme), plan.seeds)
        queue = fmean(figures.messages[SUBJECT].queue_p99_ms for figures in runs)
        goodput = fmean(figures.goodput_kbps[SUBJECT] for figures in runs)
        shown = [each for each in SHOWN_BESIDE if each != scheme]
        others = ", ".join(f"{each} {fmean(_p99_ms(each, place, plan, bench)):.0f}" for each in shown)
        note = f"{fmean(ours):.0f} ms, of which the send queue {queue:.0f} ({others}), at {goodput:.0f} kbit/s"
        return plan.find(place.name, ratios, 0.0, 1.0, note)

    limit = f"p99 of the delay at most that of `{BASELINE}`"
    return plan.outcomes("messages", "Small messages beside a bulk transfer", limit, places, finding)


def _p99_ms(scheme: str, place: Setting, plan: Plan, bench: Bench) -> list[float]:
    return [figures.messages[SUBJECT].p99_ms for figures in bench.of(place.trial(scheme), plan.seeds)]
