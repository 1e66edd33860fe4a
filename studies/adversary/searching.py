"""Search for the settings with the smallest value, by a tree-structured Parzen estimator with restarts.

The search is a function of its seed and of the values. An interrupted command repeats it and takes finished runs from
the cache.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution, IntDistribution
from optuna.samplers import TPESampler

from studies.adversary.space import setting_of
from studies.degradation.setting import Setting

BATCH = 16
"""Settings whose runs are made side by side, before the estimator sees their values."""

FIRST_DRAWN = 0.25
"""Part of the settings of a restart that are drawn at random, before the estimator proposes any."""

DISTANCE = 0.15
"""Distance below which two settings count as one minimum."""

Evaluate = Callable[[str, Sequence[Setting]], list[float]]
"""Function that returns the value of each setting. The text names the step in progress."""


@dataclass(frozen=True, slots=True)
class Search:
    """Extent of a search. Each restart has a sampler of its own, seeded with `seed` and the number of the restart."""

    seed: int
    restarts: int
    evaluations: int
    duration_s: float

    @property
    def of_restart(self) -> int:
        """Number of evaluations of one restart."""
        return max(1, self.evaluations // self.restarts)


@dataclass(frozen=True, slots=True)
class Found:
    """Evaluated setting. `position` has a number from 0 to 1, or a choice, for each parameter of the space."""

    setting: Setting
    value: float
    position: Mapping[str, float | str]

    def distance(self, other: Found) -> float:
        """Returns the mean difference of the parameters. A parameter that only one of the settings has counts as a
        distance of 1."""
        names = self.position.keys() | other.position.keys()
        return sum(_difference(self.position.get(name), other.position.get(name)) for name in names) / len(names)


def _difference(one: float | str | None, other: float | str | None) -> float:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other)
    return 0.0 if one == other else 1.0


def search(extent: Search, evaluate: Evaluate) -> list[Found]:
    """Returns all evaluated settings."""
    return [found for restart in range(1, extent.restarts + 1) for found in _restart(extent, restart, evaluate)]


def minima(found: Sequence[Found], count: int, below: float) -> list[Found]:
    """Returns up to `count` settings with the smallest values below a limit, no two of them close to each other."""
    kept: list[Found] = []
    for each in sorted((one for one in found if one.value < below), key=lambda one: one.value):
        if len(kept) < count and all(each.distance(other) >= DISTANCE for other in kept):
            kept.append(each)
    return kept


def _restart(extent: Search, restart: int, evaluate: Evaluate) -> Iterator[Found]:
    study = _study(extent, restart)
    done = 0
    while done < extent.of_restart:
        trials = [study.ask() for _ in range(min(BATCH, extent.of_restart - done))]
        settings = [
            setting_of(trial, f"search-{extent.seed}-{restart}-{done + at}", extent.duration_s)
            for at, trial in enumerate(trials, 1)
        ]
        done += len(trials)
        values = evaluate(f"restart {restart} of {extent.restarts}, setting {done} of {extent.of_restart}", settings)
        for trial, setting, value in zip(trials, settings, values, strict=True):
            study.tell(trial, value)
            yield Found(setting, value, _position(trial))


def _study(extent: Search, restart: int) -> optuna.Study:
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    with warnings.catch_warnings():
        # `group` is experimental: it models parameters together that occur together, as those of a third path do.
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        sampler = TPESampler(
            seed=extent.seed * 1000 + restart,
            multivariate=True,
            group=True,
            constant_liar=True,
            n_startup_trials=round(FIRST_DRAWN * extent.of_restart),
        )
    return optuna.create_study(sampler=sampler)


def _position(trial: optuna.Trial) -> dict[str, float | str]:
    return {name: _place(scale, trial.params[name]) for name, scale in trial.distributions.items()}


def _place(scale: BaseDistribution, value: float | str) -> float | str:
    """Returns where a value lies between the ends of its range, or the choice."""
    if not isinstance(scale, FloatDistribution | IntDistribution) or isinstance(value, str):
        return str(value)
    low, high, at = scale.low, scale.high, value
    if scale.log:
        low, high, at = math.log(low), math.log(high), math.log(at)
    return (at - low) / (high - low)
