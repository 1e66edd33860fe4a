"""Adds the results under one change, such as radio links, to those of a full reproduction."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from anabranch.errors import ExperimentError
from anabranch.experiments import outcome as out


def add_change(change: str, only: out.Outcome, whole: out.Outcome, file: Path) -> None:
    """Adds the verdicts and effects of a change to the results `whole`, which were read from `file`.

    `only` is the outcome of a reproduction of this change alone. Earlier results under the change are replaced. Raises
    `ExperimentError` if `only` has no such results, verdicts depend on them, or `whole` lacks an experiment or claim.
    """
    studies = {study["key"]: study["experiments"] for study in whole["studies"]}
    count = 0
    for study in only["studies"]:
        for experiment in study["experiments"]:
            changes = [each for each in experiment["changes"] if each["id"] == change]
            if not changes:
                continue
            place = f"{study['key']}/{experiment['id']}"
            if changes[0]["kind"] == "variant":
                raise ExperimentError(
                    f"{place}: verdicts depend on the variant `{change}`: reproduce and store everything"
                )
            own = _named(studies.get(study["key"], ()), experiment["id"], place, file)
            _put(own["changes"], "id", changes[0])
            for claim in experiment["claims"]:
                kept = _named(own["claims"], claim["id"], f"{place}, claim {claim['id']}", file)
                for sensitivity in claim["sensitivity"]:
                    _put(kept["sensitivity"], "change", sensitivity)
            count += 1
    if not count:
        raise ExperimentError(f"no experiment of the reproduction has a change `{change}`")


def _named(elements: Iterable[Any], name: str, place: str, file: Path) -> Any:
    """Returns the element of this id."""
    for each in elements:
        if each["id"] == name:
            return each
    raise ExperimentError(f"{file}: has no {place}: reproduce and store everything again")


def _put(elements: list[Any], key: str, new: Mapping[str, Any]) -> None:
    """Replaces the element with the same value of a key, or adds one at the end."""
    for index, each in enumerate(elements):
        if each[key] == new[key]:
            elements[index] = new
            return
    elements.append(new)
