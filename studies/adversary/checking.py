"""Goodput over all paths beside that of the best path alone, with one seed in the search and five to confirm it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from statistics import fmean

from anabranch.experiments.limits.outcome import CheckOutcome, Finding, Plan
from anabranch.experiments.limits.rules import Verdict, within
from anabranch.experiments.points import Bench
from studies.adversary.searching import Found, Search, minima, search
from studies.alone import best_of, ratio, ratios_left_out
from studies.degradation.one_link import goodputs
from studies.degradation.setting import Setting

LISTED = 0.97
"""Ratio below which a minimum is confirmed and listed."""


def check_search(extent: Search, count: int, least: float, rivals: Sequence[str], plan: Plan, bench: Bench) -> Checked:
    """Searches for each scheme and confirms the smallest minima with the seeds of the plan."""
    return _check_each("search", plan, least, rivals, bench, lambda scheme: _minima(scheme, extent, count, bench))


def check_cases(cases: Sequence[Setting], least: float, rivals: Sequence[str], plan: Plan, bench: Bench) -> Checked:
    """Checks each scheme in the stored cases."""
    return _check_each("cases", plan, least, rivals, bench, lambda _: list(cases))


Checked = tuple[list[CheckOutcome], dict[str, list[Setting]]]
"""Outcomes of a check, and the settings of each scheme."""

_TITLES = {"search": "Minima of the search", "cases": "Stored minima"}


def _minima(scheme: str, extent: Search, count: int, bench: Bench) -> list[Setting]:
    def evaluate(step: str, settings: Sequence[Setting]) -> list[float]:
        ways = [(setting, way) for setting in settings for way in (None, *setting.paths)]
        bench.run(f"search, {step}", [setting.trial(scheme, way) for setting, way in ways], (extent.seed,))
        return [one_seed(scheme, setting, extent.seed, bench) for setting in settings]

    found: list[Found] = search(extent, evaluate)
    return [each.setting for each in minima(found, count, LISTED)]


def one_seed(scheme: str, setting: Setting, seed: int, bench: Bench) -> float:
    """Returns the goodput over all paths, relative to the best path alone with the same seed."""
    together, *alone = (goodputs(scheme, setting, way, (seed,), bench)[0] for way in (None, *setting.paths))
    return ratio(together, max(alone))


def _check_each(
    check: str,
    plan: Plan,
    least: float,
    rivals: Sequence[str],
    bench: Bench,
    settings_of: Callable[[str], list[Setting]],
) -> Checked:
    outcomes, settings = [], {}
    for scheme in plan.schemes:
        settings[scheme] = chosen = settings_of(scheme)
        ways = [(setting, way) for setting in chosen for way in (None, *setting.paths)]
        trials = [setting.trial(scheme, way) for setting, way in ways]
        trials += [setting.trial(rival, way) for rival in rivals for setting, way in ways if way]
        bench.run(f"{check}: {scheme} confirmed", trials, plan.seeds)
        findings = tuple(_finding(scheme, setting, least, rivals, plan, bench) for setting in chosen)
        limit = f"at least {least:g} of the best path alone"
        outcomes.append(CheckOutcome(check, _TITLES[check], limit, scheme, findings))
    return outcomes, settings


def _finding(scheme: str, setting: Setting, least: float, rivals: Sequence[str], plan: Plan, bench: Bench) -> Finding:
    together = goodputs(scheme, setting, None, plan.seeds, bench)
    alone = {path: goodputs(scheme, setting, path, plan.seeds, bench) for path in setting.paths}
    ratios = ratios_left_out(together, alone)
    note = (
        f"{fmean(together):.0f} kbit/s, the best path alone {max(map(fmean, alone.values())):.0f}; "
        f"worst seed {min(ratios):.2f}{_beside_rivals(together, setting, rivals, plan, bench)}"
    )
    judged = within(ratios, least, math.inf)
    # The mean itself decides: an interval of few seeds would excuse a collapse in one of them.
    verdict = Verdict.KEPT if judged.mean >= least else Verdict.BROKEN
    return Finding(setting.name, replace(judged, verdict=verdict), least, math.inf, note)


def _beside_rivals(together: Sequence[float], setting: Setting, rivals: Sequence[str], plan: Plan, bench: Bench) -> str:
    """Returns the ratio to the best published scheme on its best path, as text."""
    means = {
        f"{rival} on {path}": fmean(goodputs(rival, setting, path, plan.seeds, bench))
        for rival in rivals
        for path in setting.paths
    }
    if not means:
        return ""
    best = best_of(means)
    return f"; {ratio(fmean(together), means[best]):.2f} of {best}"
