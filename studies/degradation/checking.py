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
    """Scope of the checks: random settings, plans of sweeps, other flows, and `quick` for a part of them."""

    random_settings: int
    draw_seed: int
    plans: tuple[Path, ...]
    rivals: tuple[str, ...]
    others: tuple[str, ...]
    quick: bool = False

    def points(self) -> list[LimitPoint]:
        """Returns the public points, or one of each class."""
        return [point for group in read_points() for point in (group.points[:1] if self.quick else group.points)]

    def drawn(self, plan: Plan) -> list[Setting]:
        """Returns the random settings."""
        return draw(self.draw_seed, self.random_settings, plan.duration_s)

    def compared(self, plan: Plan) -> list[Setting]:
        """Returns the settings in which goodput is compared: points, cells of plans, random ones."""
        points = [of_point(point, plan.duration_s) for point in self.points()]
        cells = [setting for file in self.plans for setting in of_plan(file, plan.duration_s)]
        return [*points, *cells, *self.drawn(plan)]


_Check = Callable[[Scope, Plan, Bench], list[CheckOutcome]]


CHECKS: dict[str, _Check] = {
    "one-link": lambda scope, plan, bench: check_one_link(
        "one-link", "Never worse than one link", NEVER_WORSE, scope.compared(plan), plan, bench
    ),
    "published": lambda scope, plan, bench: check_published(scope.drawn(plan), scope.rivals, plan, bench),
    "share": lambda scope, plan, bench: check_shares(bottlenecks(scope.quick), scope.others, plan, bench),
    "two-alike": lambda scope, plan, bench: check_two_alike(bottlenecks(scope.quick), plan, bench),
    "free-link": lambda scope, plan, bench: check_free_link(scope.others, plan, bench),
    "policer": lambda scope, plan, bench: check_policer(plan, bench),
    "queueing": lambda scope, plan, bench: check_queueing(bottlenecks(scope.quick), scope.points(), plan, bench),
    "wire": lambda scope, plan, bench: check_wire(scope.points(), plan, bench),
    "collapse": lambda scope, plan, bench: check_one_link(
        "collapse", "No collapse", NO_COLLAPSE, collapsing(plan.duration_s), plan, bench
    ),
    "messages": lambda scope, plan, bench: check_messages(plan, bench),
}


def check(names: Sequence[str], scope: Scope, plan: Plan, bench: Bench) -> list[CheckOutcome]:
    """Runs these checks."""
    return [outcome for name in names for outcome in CHECKS[name](scope, plan, bench)]
