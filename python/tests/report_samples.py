"""Sources of reports in tests: short runs over two paths, of which one fails for a while."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from anabranch.results import Results
from anabranch.scenario import Scenario
from anabranch.simulation import run
from anabranch.sweeps import sweep

OUTAGE = """
[run]
duration = "8 s"
schemes = ["cmt", "cmt-pf"]

[association]
recv_buffer = "128 KiB"

[[path]]
name = "path-1"
rate = "5 Mbit/s"
delay = "20 ms"
loss = 0.005

[[path]]
name = "path-2"
rate = "5 Mbit/s"
delay = "60 ms"

[[path.event]]
at = "2 s"
up = false

[[path.event]]
at = "5 s"
up = true
"""

LOSSES = """
[run]
duration = "2 s"

[[path]]
rate = "2 Mbit/s"
delay = "20 ms"
loss = 0.01

[[path]]
rate = "2 Mbit/s"
delay = "40 ms"
"""


def write_traces(folder: Path, schemes: Sequence[str] = ("cmt", "cmt-pf"), text: str = OUTAGE, seed: int = 1) -> Path:
    """Writes the traces of a run of each scheme."""
    scenario = Scenario.parse(text, name="outage")
    for scheme in schemes:
        run(scenario, scheme, seed, trace=folder)
    return folder


def swept(folder: Path, text: str = LOSSES, name: str = "losses", **arguments: object) -> Results:
    """Returns the results of a small sweep of a scenario file in `folder`."""
    file = folder / f"{name}.toml"
    file.write_text(text, encoding="utf-8")
    given: dict[str, object] = {
        "over": {"path.path-2.loss": [0, 0.05], "scheme": ["cmt", "cmt-pf", "sctp"]},
        "seeds": 3,
    }
    return sweep(file, cache=None, **{**given, **arguments})  # type: ignore[arg-type]
