"""All checks, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from anabranch.experiments.limits.outcome import CheckOutcome, Plan
from anabranch.experiments.points import Bench
from studies.bounds.points import LimitPoint, read_points
from studies.degradation.collapsing import collapsing
from studies.degradation.drawing import draw
from studies.degradation.given import of_plan, of_point
from studies.degradation.load import check_queueing, check_wire
from studies.degradation.neighbours import bottlenecks
from studies.degradation.one_link import check_one_link
from studies.degradation.published import check_published
from studies.degradation.setting import Setting
from studies.degradation.sharing import check_free_link, check_policer, check_shares, check_two_alike
from studies.degradation.small_messages import check_messages

NEVER_WORSE = 0.97
NO_COLLAPSE = 0.9


@dataclass(frozen=True, slots=True)
class Scope:
    """Scope of the checks: random settings, plans of sweeps, other flows, and whether it is a part only."""

    random_settings: int
    draw_seed: int
    plans: tuple[Path, ...]
    rivals: tuple[str, ...]
    others: tuple[str, ...]
    quick: bool = False

    def points(self) -> list[LimitPoint]:
        """Returns the public points, or one of each class."""
        return [point for group in read_points() for point in (group.points[:1] if self.quick else group.points)]

    def compared(self, plan: Plan) -> list[Setting]:
        """Settings in which goodput is compared: points, cells of plans, random ones."""
        points = [of_point(point, plan.duration_s) for point in self.points()]
        cells = [setting for file in self.plans for setting in of_plan(file, plan.duration_s)]
        return [*points, *cells, *draw(self.draw_seed, self.random_settings, plan.duration_s)]


_Check = Callable[[Scope, Plan, Bench], list[CheckOutcome]]


def _one_link(scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    title = "Never worse than one link"
    return check_one_link("one-link", title, NEVER_WORSE, scope.compared(plan), plan, bench)


def _published(scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    settings = draw(scope.draw_seed, scope.random_settings, plan.duration_s)
    return check_published(settings, scope.rivals, plan, bench)


def _share(scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    return check_shares(bottlenecks(scope.quick), scope.others, plan, bench)


def _two_alike(scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    return check_two_alike(bottlenecks(scope.quick), plan, bench)


def _free_link(scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    return check_free_link(scope.others, plan, bench)


def _policer(scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    return check_policer(plan, bench)


def _queueing(scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    return check_queueing(bottlenecks(scope.quick), scope.points(), plan, bench)


def _wire(scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    return check_wire(scope.points(), plan, bench)


def _collapse(scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    settings = collapsing(plan.duration_s)
    return check_one_link("collapse", "No collapse", NO_COLLAPSE, settings, plan, bench)


def _messages(scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    return check_messages(plan, bench)


CHECKS: dict[str, _Check] = {
    "one-link": _one_link,
    "published": _published,
    "share": _share,
    "two-alike": _two_alike,
    "free-link": _free_link,
    "policer": _policer,
    "queueing": _queueing,
    "wire": _wire,
    "collapse": _collapse,
    "messages": _messages,
}


def check(names: Sequence[str], scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    """Carries out these checks."""
    return [outcome for name in names for outcome in CHECKS[name](scope, plan, bench)]
