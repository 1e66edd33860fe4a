"""Random settings, which depend only on the seed of the draw and on their number."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from studies.degradation.setting import Setting, Table, bursts, cross_traffic, kbit, ms, over_links, single_losses

PATHS = (2, 4)
RATE_KBPS = (500.0, 40_000.0)
DELAY_MS = (3.0, 160.0)
LOSS = (0.001, 0.1)
QUEUE_PACKETS = (20.0, 200.0)
BUFFER_BYTES = (32 * 1024.0, 4 * 1024 * 1024.0)

# Probabilities of properties of a path or setting.
LOSSLESS, BURSTY, CHANGING, CROSSED, CONTESTED = 0.35, 0.3, 0.2, 0.3, 0.25

UNEVEN_RATIO = 1.5
"""Paths whose rates or delays differ by more are called uneven."""

_Choice = TypeVar("_Choice")


@dataclass(frozen=True, slots=True)
class _Drawn:
    rate_kbps: float
    delay_ms: float
    loss: float
    link: Table


def draw(seed: int, count: int, duration_s: float) -> list[Setting]:
    """Returns the first `count` settings of a draw."""
    return [_setting(seed, number, duration_s) for number in range(1, count + 1)]


class _Dice:
    """Numbers from the one method of `random.Random` that gives the same ones in every version of Python."""

    def __init__(self, *names: object) -> None:
        self._random = random.Random("/".join(map(str, names)))

    def chance(self, probability: float) -> bool:
        return self._random.random() < probability

    def uniform(self, low: float, high: float) -> float:
        return low + (high - low) * self._random.random()

    def spread(self, ends: tuple[float, float]) -> float:
        """Returns a number between the ends whose logarithm is uniformly distributed."""
        return math.exp(self.uniform(math.log(ends[0]), math.log(ends[1])))

    def one_of(self, choices: Sequence[_Choice]) -> _Choice:
        return choices[int(self._random.random() * len(choices))]


def _setting(seed: int, number: int, duration_s: float) -> Setting:
    name = f"random-{seed}-{number}"
    dice = _Dice(seed, number)
    paths = [f"path-{at}" for at in range(1, dice.one_of(range(PATHS[0], PATHS[1] + 1)) + 1)]
    drawn = [_path(_Dice(seed, number, path), duration_s) for path in paths]
    contested = dice.one_of(paths) if dice.chance(CONTESTED) else None
    links = {path: each.link for path, each in zip(paths, drawn, strict=True)}
    return over_links(name, duration_s, dice.spread(BUFFER_BYTES), links, contested, _uneven(drawn))


def _uneven(drawn: Sequence[_Drawn]) -> bool:
    rates = [each.rate_kbps for each in drawn]
    delays = [each.delay_ms for each in drawn]
    differ = max(max(rates) / min(rates), max(delays) / min(delays)) > UNEVEN_RATIO
    return differ or any(each.loss > 0 for each in drawn)


def _path(dice: _Dice, duration_s: float) -> _Drawn:
    rate_kbps, delay_ms = dice.spread(RATE_KBPS), dice.spread(DELAY_MS)
    loss = 0.0 if dice.chance(LOSSLESS) else dice.spread(LOSS)
    link: dict[str, object] = {
        "rate": kbit(rate_kbps),
        "delay": ms(delay_ms),
        "queue": f"{round(dice.spread(QUEUE_PACKETS))} packets",
    }
    if loss:
        link["loss"] = _loss(dice, loss)
    if dice.chance(CROSSED):
        link["background"] = [_cross_traffic(dice, rate_kbps)]
    if dice.chance(CHANGING):
        link["event"] = _changes(dice, rate_kbps, duration_s)
    return _Drawn(rate_kbps, delay_ms, loss, link)


def _loss(dice: _Dice, loss: float) -> Table:
    where = dice.one_of(("before-queue", "after-queue"))
    kind = bursts(loss, dice.uniform(2, 10)) if dice.chance(BURSTY) else single_losses(loss)
    return {**kind, "where": where}


def _cross_traffic(dice: _Dice, rate_kbps: float) -> Table:
    taken_kbps = rate_kbps * dice.uniform(0.1, 0.6)
    kind = dice.one_of(("cbr", "poisson", "pareto"))
    return cross_traffic(kind, taken_kbps, dice.one_of((200, 500, 1000, 1500)))


def _changes(dice: _Dice, rate_kbps: float, duration_s: float) -> list[Table]:
    """Returns random changes of the rate, between a quarter and one and a half of the first rate."""
    changes: list[Table] = []
    at_s = dice.uniform(3, 15)
    while at_s < duration_s:
        rate = kbit(rate_kbps * dice.spread((0.25, 1.5)))
        changes.append({"at": ms(at_s * 1000), "direction": "forward", "rate": rate})
        at_s += dice.uniform(3, 15)
    return changes
