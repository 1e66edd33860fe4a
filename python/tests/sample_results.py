"""Results of small sweeps for tests, and frames of figures that a test chooses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from anabranch.results import Results
from anabranch.scenario import Scenario
from anabranch.simulation import Run, run
from anabranch.sweeps import sweep

ROOT = Path(__file__).resolve().parents[2]
LOSS = "path.path-2.loss"


def frame(values: Mapping[str, Sequence[float]], metric: str = "goodput_kbps", **columns: object) -> pd.DataFrame:
    """Returns runs of these schemes with seeds from 1."""
    rows = [
        {**columns, "scheme": scheme, "seed": seed, metric: value}
        for scheme, of_scheme in values.items()
        for seed, value in enumerate(of_scheme, 1)
    ]
    return pd.DataFrame(rows)


def points(values: Mapping[float, Mapping[str, Sequence[float]]], key: str = LOSS) -> pd.DataFrame:
    """Returns runs at several values of a swept key."""
    return pd.concat([frame(of_point, **{key: value}) for value, of_point in values.items()], ignore_index=True)


def made(
    scenario: str, over: Mapping[str, Sequence[Any]], schemes: Sequence[str], seeds: int, **settings: str
) -> Results:
    """Returns the results of a grid over a scenario's file. `settings` have `__` for dots, as in `run__duration`."""
    given = {key.replace("__", "."): value for key, value in settings.items()}
    grid = {**over, **({"scheme": list(schemes)} if schemes else {})}
    return sweep(ROOT / "scenarios" / scenario, grid, seeds, overrides=given, cache=None)


@cache
def losses() -> Results:
    """Returns three schemes at four losses with five seeds each."""
    return made(
        "two-path.toml",
        {LOSS: [0.0, 0.02, 0.05, 0.1]},
        ("sctp", "cmt", "cmt-pf"),
        seeds=5,
        run__duration="4 s",
    )


@cache
def transfers() -> Results:
    """Returns two schemes and three file sizes."""
    return made("file.toml", {"flow.flow-1.size": ["100 kB", "400 kB", "1 MB"]}, ("sctp", "cmt"), 4)


@cache
def two_flows() -> Results:
    """Returns two flows that share a bottleneck."""
    return made("shared-bottleneck.toml", {}, (), 4, run__duration="3 s", run__warmup="0 s")


@cache
def without_chance() -> Results:
    """Returns results without randomness, which are the same for every seed."""
    return made("outage.toml", {}, ("cmt", "cmt-pf"), 3, run__duration="3 s")


@cache
def traced() -> Run:
    """Returns a run over two paths of which one fails after two seconds, with its traces."""
    scenario = Scenario.read(ROOT / "scenarios" / "outage.toml").with_values(
        {"run.duration": "5 s", "path.path-2.event.0.at": "2 s", "path.path-2.event.1.at": "4 s"}
    )
    return run(scenario, "cmt-pf", 1)
