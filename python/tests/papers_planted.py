"""Invented samples with known verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from anabranch.experiments.claims.claim import Claim
from anabranch.experiments.claims.quantity import Quantity
from anabranch.experiments.model import Axis, Measure
from anabranch.experiments.samples import SampleGrid

PLANTED = Path(__file__).parent / "data" / "planted-paper"
GOODPUT = Measure("goodput_kbps")
LOSS = "plr"


def axis(values: Sequence[Any] = (0.0, 0.05, 0.1), name: str = LOSS) -> Axis:
    """Returns an axis whose values are in the scenario."""
    positions = tuple(float(100 * value) if isinstance(value, float) else float(i) for i, value in enumerate(values))
    return Axis(
        name=name,
        label=name,
        values=tuple(values),
        settings=tuple({f"path.path-2.{name}": value} for value in values),
        positions=positions,
        labels=tuple(f"{position:g}" for position in positions),
    )


def around(mean: float, spread: float = 10.0, seeds: int = 20, seed: int = 1) -> np.ndarray:
    """Returns a sample with exactly this mean and standard deviation."""
    drawn = np.random.default_rng(seed).normal(size=seeds)
    drawn = (drawn - drawn.mean()) / drawn.std(ddof=1)
    return mean + spread * drawn


def grid(samples: Mapping[str, Sequence[np.ndarray]], along: Axis | None = None, **more: Any) -> SampleGrid:
    """Samples of schemes: one for each value of an axis, or one in all."""
    axes = () if along is None else (along,)
    values = np.array([np.array(each) if along else np.array(each[0]) for each in samples.values()])
    seeds = tuple(range(1, values.shape[-1] + 1))
    return SampleGrid(tuple(samples), axes, seeds, values, more.pop("whole", axes), **more)


def of(*schemes: str, **more: Any) -> Quantity:
    """Returns a quantity of these schemes."""
    return Quantity(schemes, GOODPUT, **more)


def claim(statement: Any, rank: Any = "H", status: Any = "ok", kind: str = "compare") -> Claim:
    """Returns a claim about the only experiment."""
    return Claim("planted", "only", rank, "planted claim", kind, statement, status, note="invented")
