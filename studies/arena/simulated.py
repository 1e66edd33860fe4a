"""Goodput of Anabranch's schemes in the simulator, over the recorded sections of the finished runs."""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pandas as pd

from anabranch import Scenario
from anabranch.experiments.pages.document import Block, Paragraph, Table
from anabranch.simulation import run
from studies.arena.judging import BETTER, REFERENCE, SUBJECT, judged, lowest
from studies.arena.measuring import Row
from studies.explained import explanation
from studies.recorded.judging import findings, median_of
from studies.recorded.runs import X, Y, scenario_of
from studies.recorded.sections import Section

EXPLAINED = {BETTER: 4, REFERENCE: 2}
"""Number of sections to explain of those with the lowest goodput beside the better link, and beside the reference."""


def compared(
    rows: Sequence[Row], sections: Mapping[str, Section], schemes: Sequence[str], seconds: float
) -> dict[str, list[Block]]:
    """Returns the table of the goodput of bulk data in the arena over that in the simulator, by its name."""
    frame = judged(rows)
    bulk = frame[(frame["work"] == "bulk") & frame["setting"].isin(sections) & frame["stack"].isin(schemes)]
    if bulk.empty:
        return {}
    pairs = zip(bulk["setting"], bulk["stack"], strict=True)
    simulated = [_simulated_mbps(sections[setting], stack, seconds) for setting, stack in pairs]
    title = Paragraph("Goodput of bulk data in the arena, over that in the simulator in the same section:")
    return {"simulator": [title, ratios(bulk.assign(ratio=bulk["goodput_mbps"] / simulated))]}


def explained(rows: Sequence[Row], sections: Mapping[str, Section], seconds: float) -> dict[str, list[Block]]:
    """Returns what `anabranch explain` finds in the sections with the lowest goodput, by its name."""
    texts: dict[str, list[str]] = {}
    for other, count in EXPLAINED.items():
        shown = "that of the better link" if other == BETTER else f"that of `{other}`"
        for setting, ratio in lowest(rows, sections, other, count).items():
            texts.setdefault(setting, []).append(f"{ratio:.2f} times {shown}")
    blocks: list[Block] = []
    for setting, ratios_of_it in texts.items():
        with _scenario(sections[setting], seconds) as scenario:
            report = explanation(scenario, SUBJECT, 1)
        blocks += findings(f"{setting}, {' and '.join(ratios_of_it)}", report)
    return {"explained": blocks} if blocks else {}


def _simulated_mbps(section: Section, scheme: str, seconds: float) -> float:
    """Returns the goodput of a scheme over both links of a section, with seed 1."""
    with _scenario(section, seconds) as scenario:
        goodput_kbps: float = run(scenario, scheme).metrics["goodput_kbps"]
    return goodput_kbps / 1000


@contextlib.contextmanager
def _scenario(section: Section, seconds: float) -> Iterator[Scenario]:
    """Yields the scenario of a section, and removes its table afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        scenario = scenario_of([X, Y], section.write(Path(folder)).name)
        settings = dataclasses.replace(scenario.run, duration=f"{seconds:g} s")
        file = Path(folder) / "section.toml"
        file.write_text(dataclasses.replace(scenario, run=settings).to_toml(), encoding="utf-8")
        yield Scenario.read(file)


def ratios(bulk: pd.DataFrame) -> Table:
    """Returns a row for each stack with the median and quantiles of the column `ratio`."""
    rows = []
    for stack, own in bulk.groupby("stack", sort=False)["ratio"]:
        quantiles = [f"{own.quantile(part):.2f}" for part in (0.1, 0.9)]
        rows.append([f"`{stack}`", str(len(own)), str(median_of(list(own))), *quantiles])
    return Table(["stack", "sections", "median", "10 %", "90 %"], rows, frozenset({1, 2, 3, 4}))
