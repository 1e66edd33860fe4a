"""Recomputes verdicts of a reproduction from its samples and the claims alone.

    python3 tools/recompute_verdicts.py out/papers [--papers papers] [--claims 40] [--seed 1]

DIR is a result of `anabranch papers reproduce --out DIR`. This reads DIR/KEY/EXPERIMENT/samples.parquet and
PAPERS/KEY/claims.toml, draws claims, judges them by the rules in docs/src/papers.md, and compares with
DIR/verdicts.json. It imports nothing of anabranch, so that a fault in the package's arithmetic is not repeated here.
The exit status is 0 if all verdicts are the same, 1 if some differ, and 2 if a file cannot be read.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import tomli

from recompute_rules import (
    ABOUT,
    CANNOT,
    DIFFERS,
    DIRECTION,
    REPRODUCED,
    ROUNDING,
    SIDES,
    WANTED,
    WORSE,
    Claim,
    Floats,
    Found,
    compare,
    correlation_margins,
    flat,
    gain_signs,
    interval,
    line,
    listed,
    margins,
    number,
    percentage,
    shape,
    size,
    together,
    whole,
)

GRADES = [REPRODUCED, ABOUT, DIRECTION, CANNOT]
"""Grades of a size from the best to the worst."""

PAPERS = Path(__file__).resolve().parents[1] / "papers"
DEFAULT = "default"

At: TypeAlias = Mapping[str, list[Any]]
"""Values of axes by the names of the axes."""

Load: TypeAlias = "Callable[[str], Experiment]"
"""Function that returns the samples of an experiment by its id."""


class LeftOutError(Exception):
    """Data that a claim needs was not run."""


class Experiment:
    """Samples of one experiment."""

    def __init__(self, file: Path) -> None:
        table = pq.read_table(file)
        self.about: dict[str, Any] = json.loads(table.schema.metadata[b"anabranch"])
        self.table: pd.DataFrame = table.to_pandas()
        self.axes: dict[str, Any] = {axis["name"]: axis for axis in self.about["axes"]}
        self.settings: dict[str, Any] = self.about["settings"]

    def rows(self, setting: str, scheme: str, at: At) -> pd.DataFrame:
        rows = self.table[(self.table["setting"] == setting) & (self.table["scheme"] == scheme)]
        if rows.empty:
            raise LeftOutError(f"{scheme} was left out")
        for axis, values in at.items():
            rows = rows[rows[axis].map(lambda own, values=values: any(same(own, value) for value in values))]
            if rows.empty:
                raise LeftOutError(f"{axis} was left out")
        return rows

    def sample(self, setting: str, scheme: str, column: str, at: At) -> pd.Series:
        """Returns a value for each seed: the mean over the cells, NaN if one is missing."""
        rows = self.rows(setting, scheme, at)
        if column not in rows:
            raise LeftOutError(f"{column} was not measured")
        return rows.groupby("seed", sort=False)[column].agg(lambda cells: cells.mean(skipna=False))

    def run(self, setting: str, axis: str, at: At) -> list[Any]:
        """Returns the requested values of an axis that were run, in the order of the experiment."""
        present = self.table[self.table["setting"] == setting][axis].unique()
        asked = at.get(axis, self.axes[axis]["values"])
        return [
            value
            for value in self.axes[axis]["values"]
            if any(same(value, own) for own in present) and any(same(value, own) for own in asked)
        ]

    def position(self, axis: str, value: Any) -> float:
        own = self.axes[axis]
        places = zip(own["values"], own["positions"], strict=True)
        return float(next(place for each, place in places if same(each, value)))

    def check_whole(self, setting: str, at: At) -> None:
        for axis, own in self.axes.items():
            if len(self.run(setting, axis, at)) < len(at.get(axis, own["values"])):
                raise LeftOutError(f"values of {axis} were left out")


def same(one: Any, other: Any) -> bool:
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return bool(np.isclose(one, other, rtol=1e-9, atol=0))
    return bool(one == other)


@dataclass(frozen=True)
class Quantity:
    """Quantity of a claim under one setting."""

    experiment: Experiment
    setting: str
    schemes: list[str]
    measure: dict[str, Any]
    at: At

    @property
    def column(self) -> str:
        """Name of the column, such as `cwnd_mean_bytes(path-1, 10 to 20 s)`."""
        given = [self.measure[key] for key in ("path", "flow") if self.measure.get(key)]
        if window := self.measure.get("window_s"):
            given.append(f"{window[0]:g} to {window[1]:g} s")
        if self.measure.get("time_s") is not None:
            given.append(f"{self.measure['time_s']:g} s")
        name = str(self.measure["measure"])
        return f"{name}({', '.join(given)})" if given else name

    def sample(self, scheme: str, at: At | None = None) -> pd.Series:
        return self.experiment.sample(self.setting, scheme, self.column, {**self.at, **(at or {})})

    def curve(self, scheme: str, axis: str, cell: At) -> tuple[Floats, list[float]]:
        at = {**self.at, **cell}
        values = self.experiment.run(self.setting, axis, at)
        samples = aligned([self.sample(scheme, {**at, axis: [value]}) for value in values])
        return whole(samples), [self.experiment.position(axis, value) for value in values]

    @property
    def step(self) -> float:
        """Step in which the measure is printed."""
        return float(self.experiment.about["resolutions"][self.column])

    def too_short(self) -> bool:
        shortened = bool(self.experiment.settings[self.setting]["shortened"])
        return shortened and self.column in self.experiment.about["grows"]


def aligned(samples: Sequence[pd.Series]) -> Floats:
    """Returns one row for each sample, over the seeds that all of them have."""
    return np.asarray(pd.concat(samples, axis=1, join="inner").to_numpy(dtype=float).T)


class Judge:
    """Judges the claims of one paper under one setting."""

    def __init__(self, load: Load, setting: str) -> None:
        self.load = load
        self.setting = setting

    def experiment(self, name: str) -> tuple[Experiment, str]:
        """Returns an experiment with its setting: the default one if it does not have this one."""
        found = self.load(name)
        return found, self.setting if self.setting in found.settings else DEFAULT

    def quantity(self, claim: Claim, table: Claim, schemes: Any = None, point: Claim | None = None) -> Quantity:
        point = point or {}
        name = point.get("experiment") or table.get("experiment") or claim["experiment"]
        experiment, setting = self.experiment(name)
        own = self.load(claim["experiment"]).about["measure"]
        measure: dict[str, Any] = {"measure": own["name"], **{k: v for k, v in own.items() if k != "name"}}
        for level in (claim, table):
            if level.get("measure", measure["measure"]) != measure["measure"]:
                measure = {}
            measure |= {key: level[key] for key in ("measure", "path", "flow", "window_s", "time_s") if key in level}
        places = {**claim.get("at", {}), **table.get("at", {}), **point.get("at", {})}
        at = {axis: listed(value) for axis, value in places.items() if axis in experiment.axes}
        names = listed(schemes or table.get("scheme", "all"))
        return Quantity(experiment, setting, experiment.about["schemes"] if names == ["all"] else names, measure, at)

    def parts(self, claim: Claim) -> Iterator[Found]:
        of: Callable[[Claim], Iterator[Found]] = getattr(self, "of_" + claim["kind"].replace("-", "_"))
        return of(claim)

    def verdict(self, claim: Claim) -> str:
        try:
            return max((found.verdict for found in self.parts(claim)), key=WORSE.index, default=CANNOT)
        except LeftOutError:
            return CANNOT

    def of_compare(self, claim: Claim) -> Iterator[Found]:
        each = claim.get("schemes")
        a, b = (self.quantity(claim, claim[side], each) for side in "ab")
        pairs = [(name, name) for name in a.schemes] if each else itertools.product(a.schemes, b.schemes)
        for one, other in pairs:

            def check(cell: At, cells: int, one: str = one, other: str = other) -> Found:
                left, right = aligned([a.sample(one, cell), b.sample(other, cell)])
                return compare(left, right, claim, cells)

            yield in_cells(claim, a, check)

    def of_value(self, claim: Claim) -> Iterator[Found]:
        a = self.quantity(claim, claim["a"])
        a.experiment.check_whole(a.setting, a.at)
        if a.too_short():
            raise LeftOutError("runs were too short")
        for scheme in a.schemes:
            ours = interval(np.mean, whole(a.sample(scheme).to_numpy(dtype=float)))
            yield number(ours, claim, margins(claim["unit"], claim.get("within_percent", 10.0), a.step))

    def of_trend(self, claim: Claim) -> Iterator[Found]:
        a, axis = self.quantity(claim, {}, claim.get("schemes", "all")), claim["axis"]
        if len(a.experiment.run(a.setting, axis, a.at)) < 2:
            raise LeftOutError(f"all but one value of {axis} was left out")
        for scheme in a.schemes:

            def check(cell: At, _cells: int, scheme: str = scheme) -> Found:
                curve, positions = a.curve(scheme, axis, cell)
                if claim["direction"] == "flat":
                    return flat(curve, claim.get("within_percent", 5.0))
                return shape(curve, positions, WANTED[claim["direction"]], lambda each: each.mean(axis=-1))

            yield in_cells(claim, a, check)

    def of_order(self, claim: Claim) -> Iterator[Found]:
        a = self.quantity(claim, {}, claim["schemes"])

        def check(cell: At, cells: int) -> Found:
            samples = [a.sample(scheme, cell).to_numpy(dtype=float) for scheme in a.schemes]
            higher = {"relation": "higher"}
            sides = [compare(one, other, higher, cells).side for one, other in itertools.pairwise(samples)]
            return together(sides, len(sides), compare(samples[0], samples[-1], higher, cells).side)

        yield in_cells(claim, a, check)

    def of_gain_trend(self, claim: Claim) -> Iterator[Found]:
        points = claim.get("points")
        axis = claim.get("axis", "")
        if points is None:
            points = self.load(claim["experiment"]).axes[axis]["values"]
        tables = [point if isinstance(point, dict) else {"at": {axis: point}} for point in points]
        quantities = [self.quantity(claim, claim[side], point=point) for side in "ab" for point in tables]
        samples = whole(aligned([quantity.sample(quantity.schemes[0]) for quantity in quantities]))
        both = np.stack(np.split(samples, 2))
        convention = claim.get("convention", "of_b")

        def gains(each: Floats) -> Floats:
            if convention == "difference":
                return np.array([each[0, at].mean() - each[1, at].mean() for at in range(len(tables))])
            return np.array([percentage(each[:, at], convention) for at in range(len(tables))])

        trend = shape(both, self.places(claim, tables), WANTED[claim["direction"]], gains)
        if claim.get("sign") == "any" or not both.shape[-1]:
            yield trend
            return
        printed = claim.get("gains", [])
        largest = len(tables) - 1 if claim["direction"] == "rising" else 0
        signs = gain_signs(both, gains, printed or [1.0] * len(tables), largest)
        allowed = margins("%")
        if convention == "difference":
            allowed = margins("", step=quantities[0].step)

        def gain(at: int, each: Floats) -> float:
            return float(gains(each)[at])

        sizes = [size(interval(partial(gain, at), both), one, one, allowed) for at, one in enumerate(printed)]
        side = max(trend.side, signs.side, key=["for", "unclear", "against"].index)
        yield Found(side, max(trend.size, signs.size, *sizes, REPRODUCED, key=GRADES.index))

    def places(self, claim: Claim, tables: Sequence[Claim]) -> list[float]:
        """Returns the positions of points on an axis, if they differ only in its value, and their indices otherwise."""
        row = [float(place) for place in range(len(tables))]
        names = {tuple(table.get("at", {})) for table in tables}
        if len(names) > 1 or any("experiment" in table or len(table.get("at", {})) != 1 for table in tables):
            return row
        ((name,),) = names
        values = [value for table in tables for value in listed(table["at"][name])]
        experiment = self.load(claim["experiment"])
        return [experiment.position(name, value) for value in values] if len(values) == len(row) else row

    def of_regression(self, claim: Claim) -> Iterator[Found]:
        a = self.quantity(claim, claim["a"])
        a.experiment.check_whole(a.setting, a.at)
        for scheme in a.schemes:
            curve, positions = a.curve(scheme, claim["axis"], {})
            if not curve.shape[-1]:
                yield Found("unclear")
                continue
            ours = interval(partial(line, claim["statistic"], positions), curve)
            given = {"part": claim["within_percent"]} if "within_percent" in claim else {}
            if claim["statistic"] in ("r2", "multiple_r"):
                allowed = correlation_margins(**given)
            else:
                allowed = margins(claim.get("unit", ""), **given)
            found = number(ours, claim, allowed)
            value = np.sum(listed(claim["value"]))
            if claim["statistic"] == "slope" and found.size == DIRECTION and ours.sign() == np.sign(value):
                found = Found("for", DIRECTION)
            yield found


def in_cells(claim: Claim, quantity: Quantity, check: Callable[[At, int], Found]) -> Found:
    """Judges a claim at each value of some axes, which has to be true in a share of them."""
    average = check({}, 1)
    if "at_each" not in claim:
        return average
    axes = listed(claim["at_each"])
    values = [quantity.experiment.run(quantity.setting, axis, quantity.at) for axis in axes]
    cells: list[At] = [dict(zip(axes, ([value] for value in cell), strict=True)) for cell in itertools.product(*values)]
    if not cells:
        raise LeftOutError("all cells were left out")
    found = [check(cell, len(cells)) for cell in cells]
    needed = math.ceil(claim.get("share", 1.0) * len(cells) - ROUNDING)
    worst = sorted((each.verdict for each in found), key=WORSE.index)[needed - 1]
    both = together([SIDES.get(each.verdict, "unclear") for each in found], needed, average.side)
    sizes = [both.size, worst if worst in SIDES and worst != DIFFERS else REPRODUCED]
    sizes += [average.size] if both.side == "for" else []
    return Found(both.side, max(sizes, key=GRADES.index))


def final(claim: Claim, load: Load) -> str:
    """Returns the verdict that takes the variants into account."""
    if claim["kind"] == "deferred":
        return "open: needs video"
    status = claim.get("status", "ok")
    if status in ("inconsistent", "misprint") or (status == "suspect" and claim["rank"] == "X"):
        return "contradictory in the paper"
    default = Judge(load, DEFAULT).verdict(claim)
    sides = {SIDES.get(default)}
    for name, setting in load(claim["experiment"]).settings.items():
        if setting["kind"] == "variant" and (not setting["claims"] or claim["id"] in setting["claims"]):
            sides.add(SIDES.get(Judge(load, name).verdict(claim)))
    return CANNOT if {"for", "against"} <= sides else default


def recomputed(folder: Path, papers: Path, count: int, seed: int) -> list[tuple[str, str, str]]:
    """Returns claims with the verdict of the reproduction and the recomputed one."""
    outcome = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    stored = {
        (paper["key"], claim["id"]): claim["verdict"]
        for paper in outcome["papers"]
        for experiment in paper["experiments"]
        for claim in experiment["claims"]
        if not experiment["deferred"]
    }
    drawn = random.Random(seed).sample(sorted(stored), min(count, len(stored)))
    claims = {
        (key, claim["id"]): claim
        for key in {key for key, _ in drawn}
        for claim in tomli.loads((papers / key / "claims.toml").read_text(encoding="utf-8"))["claim"]
    }

    @cache
    def load(key: str, name: str) -> Experiment:
        return Experiment(folder / key / name / "samples.parquet")

    return [(name, stored[key, name], final(claims[key, name], partial(load, key))) for key, name in drawn]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="what `anabranch papers reproduce --out DIR` wrote")
    parser.add_argument("--papers", type=Path, default=PAPERS, help="the folder with the papers (those beside tools)")
    parser.add_argument("--claims", type=int, default=40, metavar="N", help="how many claims are drawn (40)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="what they are drawn by (1)")
    options = parser.parse_args(arguments)
    try:
        found = recomputed(options.folder, options.papers, options.claims, options.seed)
    except (OSError, ValueError, KeyError) as error:
        print(f"cannot be recomputed: {error!r}; name a folder that holds samples.parquet", file=sys.stderr)
        return 2
    different = [each for each in found if each[1] != each[2]]
    for name, stored, ours in different:
        print(f"{name}: {stored} in verdicts.json, {ours} from the samples")
    print(f"{len(found)} claims, {len(found) - len(different)} with the same verdict, seed {options.seed}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
