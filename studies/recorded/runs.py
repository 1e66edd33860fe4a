"""Runs of schemes over sections of recordings: over both links, and over each link alone."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

import anabranch
from anabranch import AssociationSettings, RunSettings, Scenario
from anabranch import Path as Link
from anabranch.experiments.cost import Cost
from anabranch.experiments.sweeps import SweepOptions
from anabranch.scenario import CapacityTrace
from studies.recorded.sections import SECTION_S, Section

X, Y = "operator-x", "operator-y"
SUBJECT = "braid"
"""Scheme to judge."""

ALONE = ("sctp", SUBJECT)
"""Schemes that run over each link alone. The highest of their goodputs is that of the better link."""

DELAYS = {X: "26 ms", Y: "21 ms"}
"""Half of the median round trip of AT&T and Verizon in logs of pings from the same drives."""

QUEUE, RECV_BUFFER = "200 ms", "6 MiB"
"""Length of each queue at the mean rate, and the largest receive buffer of Linux's TCP by default (`tcp_rmem`)."""


def scenario_of(links: Sequence[str], file: str) -> Scenario:
    """Returns the scenario of a section, with both links or one of them."""
    return Scenario(
        run=RunSettings(duration=f"{SECTION_S:g} s", profile="rfc9260"),
        association=AssociationSettings(recv_buffer=RECV_BUFFER),
        paths=[
            Link(
                name=name,
                capacity=CapacityTrace(file=file, column="x_mbps" if name == X else "y_mbps"),
                delay=DELAYS[name],
                queue=QUEUE,
            )
            for name in links
        ],
    )


def run_all(
    sections: Sequence[Section], schemes: Sequence[str], seeds: Sequence[int], options: SweepOptions, cost: Cost
) -> pd.DataFrame:
    """Returns a row for each section and scheme with the mean goodput over the seeds in kbit/s.

    Columns: `section`, `direction`, `scheme`, `goodput_kbps`, `alone_kbps` (goodput of the better link alone), and
    `subject_alone_kbps` (the same with the subject only).
    """
    with tempfile.TemporaryDirectory() as folder:
        names = [section.write(Path(folder)).name for section in sections]
        alone = pd.concat(_sweep(Path(folder), [link], names, ALONE, seeds, options, cost) for link in (X, Y))
        both = _sweep(Path(folder), [X, Y], names, schemes, seeds, options, cost)
    for name, part in ("alone_kbps", alone), ("subject_alone_kbps", alone[alone["scheme"] == SUBJECT]):
        both = both.join(part.groupby("section")["goodput_kbps"].max().rename(name), on="section")
    directions = {section.name: section.direction for section in sections}
    return both.assign(direction=both["section"].map(directions))


def _sweep(
    folder: Path,
    links: Sequence[str],
    names: Sequence[str],
    schemes: Sequence[str],
    seeds: Sequence[int],
    options: SweepOptions,
    cost: Cost,
) -> pd.DataFrame:
    """Returns the mean goodput of each section and scheme over these links."""
    file = folder / "section.toml"
    file.write_text(scenario_of(links, names[0]).to_toml(), encoding="utf-8")
    key = "path.*.capacity.file"
    results = anabranch.sweep(
        file,
        {key: list(names), "scheme": list(schemes)},
        list(seeds),
        cache=options.cache,
        executor=options.executor,
        workers=options.workers,
        progress=options.progress,
    )
    cost.add(results)
    runs = results.to_pandas()
    runs["section"] = runs[key].str.removesuffix(".csv")
    return runs.groupby(["section", "scheme"], sort=False)["goodput_kbps"].mean().reset_index()
