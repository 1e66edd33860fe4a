"""Never worse than one link: goodput over all paths, over that of the best path alone with the same scheme."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

from anabranch.experiments.limits.outcome import CheckOutcome, Finding, Plan
from anabranch.experiments.points import Bench
from studies.alone import best_of, ratio
from studies.degradation.setting import SUBJECT, Setting


def check_one_link(
    check: str, title: str, least_ratio: float, settings: Sequence[Setting], plan: Plan, bench: Bench
) -> list[CheckOutcome]:
    """Checks each scheme. Other seeds than the compared ones choose the best path."""
    pairs = [(scheme, setting) for scheme in plan.schemes for setting in settings]
    bench.run(
        f"{check}: each path alone",
        [setting.trial(scheme, path) for scheme, setting in pairs for path in setting.paths],
        plan.choosing,
    )
    best = {(scheme, setting): _best_path(scheme, setting, plan, bench) for scheme, setting in pairs}
    bench.run(
        f"{check}: all paths, and the best one",
        [
            trial
            for (scheme, setting), path in best.items()
            for trial in (setting.trial(scheme), setting.trial(scheme, path))
        ],
        plan.seeds,
    )
    limit = f"at least {least_ratio:g} of the best path alone"

    def finding(scheme: str, setting: Setting) -> Finding:
        return _finding(scheme, setting, best[scheme, setting], least_ratio, plan, bench)

    return plan.outcomes(check, title, limit, settings, finding)


def goodputs(scheme: str, setting: Setting, alone: str | None, seeds: Sequence[int], bench: Bench) -> list[float]:
    """Returns the goodput of the subject by seed."""
    return [figures.goodput_kbps[SUBJECT] for figures in bench.of(setting.trial(scheme, alone), seeds)]


def _best_path(scheme: str, setting: Setting, plan: Plan, bench: Bench) -> str:
    return best_of({path: fmean(goodputs(scheme, setting, path, plan.choosing, bench)) for path in setting.paths})


def _finding(scheme: str, setting: Setting, best: str, least: float, plan: Plan, bench: Bench) -> Finding:
    together = goodputs(scheme, setting, None, plan.seeds, bench)
    alone = goodputs(scheme, setting, best, plan.seeds, bench)
    ratios = [ratio(ours, one) for ours, one in zip(together, alone, strict=True)]
    note = f"{fmean(together):.0f} kbit/s, {best} alone {fmean(alone):.0f}"
    return plan.find(setting.name, ratios, least, note=note)
