"""Scenarios that several tests start from."""

from __future__ import annotations

from pathlib import Path as FilePath

from anabranch.scenario import Path, RunSettings, Scenario

ROOT = FilePath(__file__).parents[2]
EVERY_KEY = ROOT / "crates/scenario/tests/scenario/every-key.toml"
SMALL = '[run]\nduration = "5 s"\n\n[[path]]\nrate = "1 Mbit/s"\ndelay = "10 ms"\n'


def two_paths() -> Scenario:
    """Returns a scenario made in Python."""
    return Scenario(
        run=RunSettings(duration="5 s", schemes=["cmt"]),
        paths=[Path(rate="10 Mbit/s", delay="45 ms", loss=0.01), Path(rate="2 Mbit/s", delay="90 ms")],
    )
