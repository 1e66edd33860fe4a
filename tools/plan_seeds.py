"""Computes the number of seeds that experiments of the papers need, before they are run.

    python3 tools/plan_seeds.py out/papers --detect 2 [--papers papers]

DIR is a pilot: a result of `anabranch papers reproduce all --out DIR`. The script uses every claim that compares
schemes in percent and is undecided in the pilot because its interval is too wide. The scatter of the claim's paired
differences gives the least number of seeds that detect a difference of this many points with a power of 80 % at the
level of 5 %. An experiment with such claims gets the maximum of these numbers, at least its current number of seeds
and at most 1000. The numbers are written to PAPERS/KEY/seeds.toml, which the package reads. An existing plan is not
replaced: raising the number of seeds after seeing results makes chance significant.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from scipy import stats

from anabranch.errors import ExperimentError
from anabranch.experiments.reading.seeds import SEEDS_FILE
from anabranch.experiments.study import Study
from anabranch.experiments.verdicts.estimates import CONFIDENCE
from anabranch.experiments.verdicts.grades import Verdict
from anabranch.experiments.verdicts.power import LEVEL, MAX_SEEDS, POWER, seeds_needed
from anabranch.papers.catalogue import read_key

PAPERS = Path(__file__).resolve().parents[1] / "papers"

COMPARED = ("compare", "order")
"""Kinds of claims whose figure is a difference in percent, paired by seed."""


def std_of(ours: Mapping[str, Any]) -> float:
    """Returns the standard deviation of the differences behind an interval."""
    quantile = float(stats.t.ppf((1 + CONFIDENCE) / 2, ours["n"] - 1))
    return float(ours["half_width"] * math.sqrt(ours["n"]) / quantile)


def needed(claim: Mapping[str, Any], points: float) -> int:
    """Returns the largest number of seeds that a too wide figure of a claim needs, at most `MAX_SEEDS`."""
    if claim["verdict"] != Verdict.CANNOT_TELL.value or claim["depends_on"]:
        return 0
    parts = [part for part in claim["parts"] if part["unit"] == "%" and part["detectable"] is not None]
    wide = [part["ours"] for part in parts if part["ours"]["kind"] == "interval"]
    return max((seeds_needed(std_of(ours), points) or MAX_SEEDS for ours in wide), default=0)


def plan(paper: Study, pilot: Mapping[str, Any], points: float) -> dict[str, int]:
    """Returns the number of seeds of each experiment that has a claim which needs more."""
    compared = {claim.id for claim in paper.claims if claim.kind in COMPARED}
    found = {}
    for experiment in pilot["experiments"]:
        claims = [needed(claim, points) for claim in experiment["claims"] if claim["id"] in compared]
        if most := max(claims, default=0):
            found[experiment["id"]] = min(MAX_SEEDS, max(paper.experiment(experiment["id"]).seeds, most))
    return found


def text_of(seeds: Mapping[str, int], about: Mapping[str, Any], points: float) -> str:
    """Returns the content of the file."""
    lines = [
        "# Seeds of each experiment, computed before the run from the scatter of a pilot by tools/plan_seeds.py.",
        "# They are not changed after results were seen.",
        f"detect_points = {points:g}",
        f"power = {POWER:g}",
        f"level = {LEVEL:g}",
        f'pilot_date = "{about["date"]}"',
        f'pilot_commit = "{about["commit"]}"',
        "",
        "[seeds]",
        *(f"{experiment} = {number}" for experiment, number in seeds.items()),
    ]
    return "\n".join(lines) + "\n"


def write_plans(folder: Path, papers: Path, points: float) -> list[tuple[Path, dict[str, int]]]:
    """Writes a file for each paper of the pilot. Raises `ExperimentError` and writes nothing if one has a plan."""
    outcome = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    about = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    if outcome["scope"]["quick"]:
        raise ExperimentError(f"{folder}: is a quick run, whose runs are shorter and scatter more: name a full one")
    files = {paper["key"]: papers / paper["key"] / SEEDS_FILE for paper in outcome["studies"]}
    for file in files.values():
        if file.exists():
            raise ExperimentError(f"{file}: is a plan already; seeds are not changed after results were seen")
    found = []
    for pilot in outcome["studies"]:
        seeds = plan(read_key(pilot["key"], papers), pilot, points)
        files[pilot["key"]].write_text(text_of(seeds, about, points), encoding="utf-8")
        found.append((files[pilot["key"]], seeds))
    return found


def points_of(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.1 <= value <= 100:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of points from 0.1 to 100")
    return value


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, metavar="DIR", help="the pilot: what `papers reproduce --out DIR` wrote")
    parser.add_argument("--detect", type=points_of, required=True, metavar="POINTS", help="the difference in points")
    parser.add_argument("--papers", type=Path, default=PAPERS, help="the folder with the papers (those beside tools)")
    options = parser.parse_args(arguments)
    try:
        written = write_plans(options.folder, options.papers, options.detect)
    except (OSError, ValueError, KeyError, ExperimentError) as error:
        print(f"no seeds were planned: {error}", file=sys.stderr)
        return 2
    for file, seeds in written:
        planned = ", ".join(f"{experiment} {number}" for experiment, number in seeds.items())
        print(f"{file}: {planned or 'nothing needs more seeds'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
