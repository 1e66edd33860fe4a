"""Verdicts are monotone: a part of a claim that gets worse never makes the verdict better."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from papers_planted import LOSS, around, axis, claim, grid, of

from anabranch.experiments.claims.compare import Compare
from anabranch.experiments.claims.order import Order
from anabranch.experiments.verdicts.estimates import estimate
from anabranch.experiments.verdicts.finding import Finding
from anabranch.experiments.verdicts.grades import Direction, Verdict
from anabranch.experiments.verdicts.rules import cells
from anabranch.experiments.verdicts.sizes import Size

OURS = estimate(lambda each: float(each.mean()), around(0.0))
HOLDS, UNCLEAR, AGAINST = Direction.HOLDS, Direction.UNCLEAR, Direction.AGAINST

FROM_BEST_TO_WORST = [
    *(Finding(HOLDS, OURS, "%", size) for size in Size),
    Finding(UNCLEAR, OURS, "%"),
    Finding(AGAINST, OURS, "%"),
]
"""Findings of every direction and size."""
AVERAGES = [Finding(direction, OURS, "%", size) for direction in (HOLDS, UNCLEAR, AGAINST) for size in Size]


def severity(verdict: Verdict) -> int:
    assert verdict.grade.severity is not None
    return verdict.grade.severity


def judged(each: Sequence[int], average: Finding, share: float) -> int:
    return severity(cells([FROM_BEST_TO_WORST[index] for index in each], average, share).verdict)


def worsened(each: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Yields the same cells with one of them worse by a step."""
    for at, index in enumerate(each):
        if index + 1 < len(FROM_BEST_TO_WORST):
            yield (*each[:at], index + 1, *each[at + 1 :])


@pytest.mark.parametrize("share", [1.0, 0.9, 0.7, 0.51])
@pytest.mark.parametrize("count", [1, 2, 3, 5, 6])
def test_cell_that_gets_worse_never_improves_verdict(count: int, share: float) -> None:
    for average in AVERAGES:
        for each in itertools.combinations_with_replacement(range(len(FROM_BEST_TO_WORST)), count):
            before = judged(each, average, share)
            assert all(judged(after, average, share) >= before for after in worsened(each)), (each, average)


@pytest.mark.parametrize("share", [1.0, 0.9, 0.7])
@pytest.mark.parametrize("count", [12, 33])
def test_contrary_cells_never_improve_verdict(count: int, share: float) -> None:
    for direction in (HOLDS, UNCLEAR, AGAINST):
        average = Finding(direction, OURS, "%")
        grades = {
            (holds, against): judged([0] * holds + [4] * (count - holds - against) + [5] * against, average, share)
            for holds in range(count + 1)
            for against in range(count + 1 - holds)
        }
        for (holds, against), grade in grades.items():
            for other in ((holds - 1, against), (holds, against + 1), (holds - 1, against + 1)):
                assert grades.get(other, grade) >= grade, (holds, against, other, direction)


@pytest.mark.parametrize(
    ("holds", "unclear", "against", "found"),
    [
        (33, 0, 0, Verdict.REPRODUCED),
        (30, 0, 3, Verdict.DIRECTION_ONLY),
        (17, 13, 3, Verdict.DIRECTION_ONLY),
        (16, 17, 0, Verdict.CANNOT_TELL),
        (10, 23, 0, Verdict.CANNOT_TELL),
        (10, 20, 3, Verdict.CANNOT_TELL),
        (10, 6, 17, Verdict.DIFFERS),
    ],
)
def test_most_cells_have_to_hold_for_the_direction(holds: int, unclear: int, against: int, found: Verdict) -> None:
    each = [0] * holds + [4] * unclear + [5] * against
    assert judged(each, Finding(HOLDS, OURS, "%"), 1.0) == severity(found)


def test_planted_contrary_cells_never_improve_verdict() -> None:
    """Compares cells of 1100, then unclear ones, then contrary ones, with 1000."""
    grades = {}
    for holds, against in itertools.product(range(7), repeat=2):
        if holds + against <= 6:
            means = [1300.0] * holds + [1000.0] * (6 - holds - against) + [980.0] * against
            samples = grid(
                {
                    "A": [around(mean, 10, seed=i) for i, mean in enumerate(means)],
                    "B": [around(1000, 10, seed=50 + i) for i in range(6)],
                },
                axis(tuple(0.01 * i for i in range(6))),
            )
            statement = Compare(of("A"), of("B"), "higher", at_each=(LOSS,))
            grades[holds, against] = severity(claim(statement).judge(lambda *_, samples=samples: samples).verdict)
    for (holds, against), grade in grades.items():
        assert grades.get((holds, against + 1), grade) >= grade
        assert grades.get((holds - 1, against), grade) >= grade


def test_neighbour_that_gets_worse_never_improves_order() -> None:
    steps = {"holds": 60.0, "unclear": 1.0, "against": -60.0}
    grades: dict[tuple[str, ...], int] = {}
    for each in itertools.product(steps, repeat=3):
        # The ends are in the claimed order, for all values between them.
        means = np.cumsum([1000.0, *(-steps[name] for name in each)])
        means[0] = max(means[0], means[-1] + 60)
        named = zip("ABCD", means, strict=True)
        samples = grid({name: [around(mean, 10, seed=i)] for i, (name, mean) in enumerate(named)})
        statement = Order(of("A", "B", "C", "D"))
        grades[each] = severity(claim(statement, kind="order").judge(lambda *_, samples=samples: samples).verdict)
    assert grades["holds", "holds", "holds"] == severity(Verdict.REPRODUCED)
    assert grades["holds", "holds", "unclear"] <= grades["holds", "holds", "against"]
    assert grades["holds", "unclear", "unclear"] <= grades["holds", "unclear", "against"]
    assert grades["holds", "unclear", "against"] <= grades["holds", "against", "against"]
