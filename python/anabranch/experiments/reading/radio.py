"""Reader of `radio.toml`: radio links that replace the links of a study's scenarios."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from anabranch.experiments.fields import Fields, read_toml
from anabranch.experiments.model import RADIO, Change, Experiment, Reduction, Settings
from anabranch.experiments.reading.experiments import check_change

RADIO_FILE = "radio.toml"

RENAMES = {"loss": "jitter.failure"}
"""Losses of the study are failed attempts of the link layer, which retransmits."""


@dataclass(frozen=True, slots=True)
class _Links:
    """Settings of the links of some scenarios, which are named by their files."""

    scenarios: tuple[str, ...]
    settings: Settings


def with_radio_links(
    path: Path, experiments: tuple[Experiment, ...], claimed: Container[str]
) -> tuple[Experiment, ...]:
    """Returns the experiments with an ablation to radio links, or unchanged if the file does not exist.

    Experiments without claims, which are those not in `claimed`, stay as they are.
    Raises `ExperimentError` if the file is invalid, or a scenario is invalid with its links.
    """
    if not path.exists():
        return experiments
    top = Fields(read_toml(path), path)
    about, seeds = top.need("about", str), top.need("seeds", int)
    if seeds < 1:
        raise top.error("seeds", f"is {seeds}; there has to be one at least")
    files = {experiment.scenario.name for experiment in experiments}
    links = top.each("links", lambda fields: _links(fields, files))
    top.done()
    radio = Change(RADIO, "ablation", about, less=Reduction(seeds), renames=RENAMES)
    return tuple(_with(each, radio, links, path) if each.id in claimed else each for each in experiments)


def _links(fields: Fields, files: Iterable[str]) -> _Links:
    scenarios = fields.texts("scenarios")
    fields.check_known("scenarios", scenarios, files)
    return _Links(scenarios, fields.need("set", dict))


def _with(experiment: Experiment, radio: Change, links: Iterable[_Links], path: Path) -> Experiment:
    settings: dict[str, Any] = {}
    for each in links:
        settings |= each.settings if experiment.scenario.name in each.scenarios else {}
    if not settings:
        return experiment
    change = replace(radio, less=replace(radio.less, overrides=settings))
    check_change(Fields({}, path, f"experiment {experiment.id}"), experiment, change)
    return replace(experiment, ablations=(*experiment.ablations, change))
