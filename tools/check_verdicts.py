"""Checks the direction of verdicts of a reproduction against its samples, without the package.

    python3 tools/check_verdicts.py out/papers [--papers papers]

DIR is what `anabranch papers reproduce --out DIR` wrote. Checked are claims that compare two schemes over the same
points: a claim that holds, in size or in direction, has a mean difference of the claimed sign in `samples.parquet`, and
a claim that differs has not. The exit status is 0 if all agree, 1 if one does not, and 2 if a file cannot be read.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import tomli

HOLDS = {"reproduced", "about", "direction only"}
DIFFERS = {"differs"}
SIGNS = {"higher": 1, "lower": -1}


def comparable(claim: dict[str, Any]) -> bool:
    """Returns `True` for a claim of two schemes that are compared by the experiment's own measure."""
    sides = [claim.get("a"), claim.get("b")]
    plain = all(
        isinstance(side, dict)
        and isinstance(side.get("scheme"), str)
        and not {"measure", "experiment", "at"} & set(side)
        for side in sides
    )
    other = {"measure", "at_each", "path", "flow", "window_s", "time_s", "schemes"} & set(claim)
    return claim["kind"] == "compare" and claim.get("relation") in SIGNS and plain and not other


def same(one: Any, other: Any) -> bool:
    """Returns `True` for equal values, and for numbers that differ by their decimal notation alone."""
    numbers = all(isinstance(each, (int, float)) for each in (one, other))
    return math.isclose(one, other, rel_tol=1e-9) if numbers else bool(one == other)


def difference(file: Path, claim: dict[str, Any]) -> float | None:
    """Returns the mean difference of the two schemes, or nothing if the experiment's measure has parameters."""
    table = pq.read_table(file)
    about = json.loads(table.schema.metadata[b"anabranch"])
    rows = table.to_pandas()
    rows = rows[rows["setting"] == "default"]
    if list(about["measure"]) != ["name"] or about["measure"]["name"] not in rows:
        return None
    for axis, value in claim.get("at", {}).items():
        wanted = value if isinstance(value, list) else [value]
        rows = rows[[any(same(own, each) for each in wanted) for own in rows[axis]]]
    means = rows.groupby("scheme")[about["measure"]["name"]].mean()
    names = [claim[side]["scheme"] for side in "ab"]
    return float(means[names[0]] - means[names[1]]) if set(names) <= set(means.index) else None


def checked(folder: Path, papers: Path) -> Iterator[tuple[str, str, float, bool]]:
    """Yields each checked claim with its verdict, the mean difference, and `True` if both agree."""
    outcome = json.loads((folder / "verdicts.json").read_text(encoding="utf-8"))
    for paper in outcome["studies"]:
        text = (papers / paper["key"] / "claims.toml").read_text(encoding="utf-8")
        claims = {claim["id"]: claim for claim in tomli.loads(text)["claim"]}
        for experiment in paper["experiments"]:
            for found in experiment["claims"]:
                claim, verdict = claims[found["id"]], found["default"]
                if verdict not in HOLDS | DIFFERS or not comparable(claim):
                    continue
                ours = difference(folder / paper["key"] / experiment["id"] / "samples.parquet", claim)
                if ours is not None:
                    yield found["id"], verdict, ours, (ours * SIGNS[claim["relation"]] > 0) == (verdict in HOLDS)


def main(arguments: list[str] | None = None) -> int:
    """Runs the check and returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--papers", type=Path, default=Path(__file__).resolve().parents[1] / "papers")
    options = parser.parse_args(arguments)
    try:
        found = list(checked(options.folder, options.papers))
    except (OSError, ValueError, KeyError) as error:
        print(f"{options.folder}: {error}; name a folder that `anabranch papers reproduce` wrote", file=sys.stderr)
        return 2
    for name, verdict, ours, agrees in found:
        if not agrees:
            print(f"{name}: {verdict} in verdicts.json, but the mean difference of the samples is {ours:+.4g}")
    print(f"{len(found)} claims, {sum(agrees for *_, agrees in found)} agree with the samples")
    return 0 if all(agrees for *_, agrees in found) else 1


if __name__ == "__main__":
    sys.exit(main())
