"""Never worse than the published schemes: goodput over that of the best of them in each setting."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean, median

from anabranch.counting import counted
from anabranch.experiments.limits.outcome import CheckOutcome, Finding, Overall, Plan
from anabranch.experiments.limits.rules import Judged, median_above, share_kept
from anabranch.experiments.points import Bench
from studies.alone import best_of, ratio
from studies.degradation.one_link import goodputs
from studies.degradation.setting import Setting

MIN_RATIO, SHARE_OF_SETTINGS = 0.97, 0.95

MIN_MEDIAN = 1.1
"""Of the ratios where paths lose packets or differ."""

MAX_SHARES = 1.25
"""Beside another flow only schemes that take no more are compared with."""

_TITLE = "Never worse than the published schemes"


def check_published(settings: Sequence[Setting], rivals: Sequence[str], plan: Plan, bench: Bench) -> list[CheckOutcome]:
    """Checks each scheme. Other seeds than the compared ones choose the best rival."""
    bench.run(
        "published: every scheme",
        [setting.trial(rival) for setting in settings for rival in rivals],
        plan.choosing,
    )
    best = {
        (scheme, setting): rival
        for setting in settings
        for scheme in plan.schemes
        if (rival := best_rival(setting, [each for each in rivals if each != scheme], plan, bench))
    }
    bench.run(
        "published: the best one",
        [setting.trial(each) for (scheme, setting), rival in best.items() for each in (scheme, rival)],
        plan.seeds,
    )
    return [_outcome(scheme, settings, best, plan, bench) for scheme in plan.schemes]


def best_rival(setting: Setting, rivals: Sequence[str], plan: Plan, bench: Bench) -> str | None:
    """Returns the rival with the most goodput of those that are fair to other flows, or `None`."""
    means = {
        rival: fmean(goodputs(rival, setting, None, plan.choosing, bench))
        for rival in rivals
        if _share(rival, setting, plan, bench) <= MAX_SHARES
    }
    return best_of(means) if means else None


def _share(scheme: str, setting: Setting, plan: Plan, bench: Bench) -> float:
    contest = setting.contest
    if contest is None:
        return 1.0
    return fmean(contest.share(figures) for figures in bench.of(setting.trial(scheme), plan.choosing))


def _outcome(
    scheme: str, settings: Sequence[Setting], best: dict[tuple[str, Setting], str], plan: Plan, bench: Bench
) -> CheckOutcome:
    compared = [setting for setting in settings if (scheme, setting) in best]
    findings = {setting: _finding(scheme, setting, best[scheme, setting], plan, bench) for setting in compared}
    return CheckOutcome(
        "published",
        _TITLE,
        f"at least {MIN_RATIO:g} of the best in {100 * SHARE_OF_SETTINGS:g} % of settings; median above "
        f"{MIN_MEDIAN:g} where paths lose packets or differ",
        scheme,
        tuple(findings.values()),
        overall(
            [each.judged for each in findings.values()],
            [each.judged for setting, each in findings.items() if setting.uneven],
        ),
    )


def overall(judged: Sequence[Judged], uneven: Sequence[Judged]) -> tuple[Overall, ...]:
    """Returns the requirements for all settings together."""
    reached = sum(each.mean >= MIN_RATIO for each in judged)
    share = Overall(
        "share of settings",
        share_kept(judged, MIN_RATIO, SHARE_OF_SETTINGS),
        f"a mean of at least {MIN_RATIO:g} in {reached} of {counted(len(judged), 'setting')}",
    )
    means = [each.mean for each in uneven]
    text = (
        f"median {median(means):.2f} in {counted(len(means), 'setting')} with losses or unlike paths"
        if means
        else "no settings"
    )
    return share, Overall("median", median_above(uneven, MIN_MEDIAN), text)


def _finding(scheme: str, setting: Setting, rival: str, plan: Plan, bench: Bench) -> Finding:
    ours = goodputs(scheme, setting, None, plan.seeds, bench)
    theirs = goodputs(rival, setting, None, plan.seeds, bench)
    ratios = [ratio(one, other) for one, other in zip(ours, theirs, strict=True)]
    note = f"{fmean(ours):.0f} kbit/s, {rival} {fmean(theirs):.0f}"
    return plan.find(setting.name, ratios, MIN_RATIO, note=note)
