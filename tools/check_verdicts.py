"""Checks all verdicts of a reproduction against its stored means and samples, without the package.

    python3 tools/check_verdicts.py docs/results/papers.json.xz [--papers papers]
    python3 tools/check_verdicts.py out/papers

RESULTS is a file of `anabranch papers store` or a folder of `anabranch papers reproduce`. The rules are those of the
chapter "The papers", implemented a second time. Means and intervals determine direction, ratio and tolerance of claims
that compare two quantities or name a number, and the direction of trends, orders and gains from end to end. Parts
determine the verdict on a claim, and variants may leave it open. In a folder ratios are computed from samples too. The
exit status is 0 if all agree, 1 if one does not, and 2 if a file cannot be read.
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Table: TypeAlias = "dict[str, Any]"
Band: TypeAlias = "tuple[float, float]"

HOLDS = ("reproduced", "about", "direction only")
SEVERITY = (*HOLDS, "cannot tell", "differs")
SIGNS = {"higher": 1, "lower": -1, "rising": 1, "falling": -1}
FITS, ABOUT, OFF, WIDE = "reproduced", "about", "direction only", "cannot tell"
CLOSE, MANY_SEEDS = 0.1, 8
"""Part of a half-width within which the intervals of a ratio and of a difference may disagree about zero, with as many
seeds at least. They differ more with fewer seeds."""


def interval(ours: Table) -> Band | None:
    """Returns the ends of the interval, or `None` for a single value."""
    if ours["mean"] is None or ours["kind"] not in ("interval", "deterministic"):
        return None
    half_width = ours["half_width"] or 0.0
    return ours["mean"] - half_width, ours["mean"] + half_width


def signs(ours: Table, wanted: int) -> set[str]:
    """Returns the directions that a figure allows for a claimed sign: holds, against, unclear."""
    ends = interval(ours)
    if ends is None:
        return {"unclear"}
    mean, half_width = wanted * ours["mean"], ours["half_width"] or 0.0
    found = "holds" if mean > 0 else "against"
    if half_width and ours["n"] < MANY_SEEDS:
        return {found, "unclear"}
    if abs(mean) > (1 + CLOSE) * half_width or half_width == 0:
        return {found}
    return {"unclear"} if abs(mean) < (1 - CLOSE) * half_width else {found, "unclear"}


def bands(low: float, high: float, percent: float, unit: str) -> tuple[Band, Band]:
    """Returns the ranges in which a figure is reproduced, and in which it is about as large."""
    effect = max(abs(low), abs(high)) / 2
    near, about = (min(2.0, effect), min(5.0, effect)) if unit == "%" else (0.0, 0.0)
    close = low - max(near, abs(low) * percent / 100), high + max(near, abs(high) * percent / 100)
    return close, (min(low - about, 0.67 * low, 1.5 * low), max(high + about, 0.67 * high, 1.5 * high))


def size(ours: Table, near: Band, about: Band) -> str:
    """Returns the verdict on a size whose direction holds."""
    if ours["mean"] is None:
        return OFF
    ends = interval(ours)
    if ends is None:
        return WIDE
    slack = 1e-6 * max(1.0, *map(abs, ends))
    overlaps = near[0] <= ends[1] + slack and ends[0] <= near[1] + slack

    def is_narrow(band: Band) -> bool:
        return ends[1] - ends[0] <= band[1] - band[0] + slack

    if overlaps and is_narrow(near):
        return FITS
    if about[0] - slack <= ours["mean"] <= about[1] + slack and is_narrow(about):
        return ABOUT
    return WIDE if overlaps else OFF


def inside(ours: Table, low: float, high: float) -> str:
    """Returns "holds" if the whole interval is inside a range, "against" if it is outside, and "unclear" otherwise."""
    ends = interval(ours)
    if ends is None:
        return "unclear"
    if low <= ends[0] and ends[1] <= high:
        return "holds"
    return "against" if ends[1] < low or ends[0] > high else "unclear"


def verdict(direction: str, of_size: str = FITS) -> str:
    """Returns the verdict of a direction and a size."""
    return {"against": "differs", "unclear": "cannot tell"}.get(direction, of_size)


def compared(claim: Table, part: Table) -> set[str]:
    """Returns the verdicts that the figure of a comparison allows."""
    ours, relation, within = part["ours"], claim["relation"], claim.get("within_percent", 5.0)
    if relation in SIGNS:
        wanted = SIGNS[relation]
        claimed = wanted * claim.get("percent", 0)
        of_size = size(ours, *bands(claimed, claimed, 10.0, "%")) if claimed else FITS
        overall = signs(ours, wanted)
    else:
        low = -math.inf if relation == "not-higher" else -within
        overall, of_size = {inside(ours, low, math.inf if relation == "not-lower" else within)}, FITS
    if not claim.get("at_each"):
        return {verdict(each, of_size) for each in overall}
    return {in_cells(part["detail"], claim.get("share", 1.0), each, of_size) for each in overall}


def in_cells(detail: str, share: float, overall: str, of_size: str) -> str:
    """Returns the verdict on a claim at each value of an axis, from the counts of cells and the average."""
    match = re.search(r"holds in (\d+) of (\d+) cells, the contrary in (\d+)", detail)
    if match is None:
        return "cannot tell"
    holds, count, against = map(int, match.groups())
    needed = math.ceil(share * count - 1e-9)
    if holds >= needed:
        return of_size if overall == "holds" else FITS
    if overall == "holds" and 2 * holds >= count:
        return OFF
    return verdict(
        "against" if against > count - needed and not (overall == "holds" and 2 * against <= count) else "unclear"
    )


def numbered(claim: Table, part: Table) -> set[str]:
    """Returns the verdict that a figure gives beside the number of a value or a regression."""
    ours, value, statistic = part["ours"], claim["value"], claim.get("statistic", "")
    low, high = (value[0], value[-1]) if isinstance(value, list) else (value, value)
    if statistic in ("r2", "multiple_r"):
        percent = claim.get("within_percent", 5.0)
        margin = min(0.1, max(abs(low), abs(high)) / 2)
        near, about = bands(low, high, percent, "")[0], (low - margin, high + margin)
    else:
        near, about = bands(low, high, claim.get("within_percent", 10.0), claim.get("unit", ""))
    found = size(ours, near, about)
    if found != OFF:
        return {found}
    if statistic == "slope" and "holds" in signs(ours, 1 if low + high > 0 else -1):
        return {OFF}
    return {"differs" if inside(ours, *about) == "against" else "cannot tell"}


def shown(claim: Table, part: Table) -> set[str]:
    """Returns the verdicts that the figure of a trend, an order or a gain allows.

    The figure is the change from end to end. Steps between are not stored, so a claim may do worse than its ends.
    """
    worse = {"cannot tell", "differs"}
    if claim.get("direction") == "flat":
        within = claim.get("within_percent", 5.0)
        most = 200 * within / (100 - within)
        return set(SEVERITY) if abs(part["ours"]["mean"] or 0.0) <= most else worse
    gains = [float(gain) for gain in re.findall(r"[+-][\d.]+", part["detail"].partition(";")[0])]
    lost = claim["kind"] == "gain-trend" and claim.get("sign") != "any" and not claim.get("gains") and sum(gains) < 0
    ends = signs(part["ours"], SIGNS.get(claim.get("direction", ""), 1))
    if claim.get("at_each"):
        found = {in_cells(part["detail"], claim.get("share", 1.0), each, FITS) for each in ends}
        return found | {OFF} if FITS in found else found
    if ends == {"against"} and claim["kind"] != "order":
        return {"differs"}
    return set(SEVERITY) if "holds" in ends and not lost else worse


CHECKS = {
    "compare": compared,
    "value": numbered,
    "regression": numbered,
    "trend": shown,
    "order": shown,
    "gain-trend": shown,
}


def wrong(claim: Table, found: Table) -> Iterator[str]:
    """Yields the contradictions between a claim's verdict and its stored figures."""
    parts = found["parts"]
    for part in parts:
        zero = claim["kind"] == "value" and not claim["value"]
        allowed = set(SEVERITY) if zero else CHECKS[claim["kind"]](claim, part)
        if part["verdict"] not in allowed:
            name, expected = part["label"] or "its figure", " or ".join(sorted(allowed))
            yield f"{name} is {part['verdict']}, but {figure(part)} makes it {expected}"
    contradictory = claim.get("status") in ("inconsistent", "misprint") or (
        claim.get("status") == "suspect" and claim["rank"] == "X"
    )
    worst = max((part["verdict"] for part in parts), key=SEVERITY.index, default="cannot tell")
    default = "open: needs video" if claim["kind"] == "deferred" else "contradictory" if contradictory else worst
    if found["default"] != default:
        yield f"{found['default']} without variants, but its parts make it {default}"
    told = {
        direction(found["default"]),
        *(direction(each["verdict"]) for each in found["sensitivity"] if each["decides"]),
    }
    is_open = len(told - {"unclear"}) > 1 and default in SEVERITY
    if found["verdict"] != ("cannot tell" if is_open else found["default"]):
        yield f"{found['verdict']}, but its variants make it {'cannot tell' if is_open else found['default']}"


def direction(of: str) -> str:
    """Returns the direction of a verdict."""
    return "holds" if of in HOLDS else "against" if of == "differs" else "unclear"


def figure(part: Table) -> str:
    """Returns the figure of a part as text."""
    ours = part["ours"]
    return f"{ours['mean']} ± {ours['half_width']} {part['unit']}".rstrip()


def sampled(file: Path, claim: Table, found: Table) -> Iterator[str]:
    """Yields a contradiction between the figure of a plain comparison and the samples of its experiment."""
    import pyarrow.parquet as pq

    sides = [claim.get("a"), claim.get("b")]
    plain = all(
        isinstance(each, dict) and set(each) == {"scheme"} and isinstance(each["scheme"], str) for each in sides
    )
    if claim["kind"] != "compare" or not plain or {"measure", "at_each", "schemes"} & set(claim) or not found["parts"]:
        return
    table = pq.read_table(file)
    about = json.loads(table.schema.metadata[b"anabranch"])
    rows, measure = table.to_pandas(), about["measure"]["name"]
    if list(about["measure"]) != ["name"] or measure not in rows:
        return
    rows = rows[rows["setting"] == "default"]
    for axis, value in claim.get("at", {}).items():
        wanted = value if isinstance(value, list) else [value]
        rows = rows[[any(same(own, each) for each in wanted) for own in rows[axis]]]
    means = rows.groupby("scheme")[measure].mean()
    first, second = (float(means[each["scheme"]]) for each in sides if each)
    ours = found["parts"][0]["ours"]["mean"]
    percent = 100 * (first - second) / (first if claim.get("convention") == "of_a" else second)
    if ours is not None and not math.isclose(percent, ours, rel_tol=1e-6, abs_tol=1e-6):
        yield f"its figure is {ours:+.6g} %, but the samples make it {percent:+.6g} %"


def same(one: Any, other: Any) -> bool:
    """Returns `True` for equal values, and for numbers that differ by their decimal notation alone."""
    numbers = all(isinstance(each, (int, float)) for each in (one, other))
    return math.isclose(one, other, rel_tol=1e-9) if numbers else bool(one == other)


def checked(results: Path, papers: Path) -> Iterator[tuple[str, list[str]]]:
    """Yields each claim with its contradictions."""
    is_folder = results.is_dir()
    text = (results / "verdicts.json").read_bytes() if is_folder else lzma.decompress(results.read_bytes())
    outcome = json.loads(text)
    for study in (outcome if is_folder else outcome["outcome"])["studies"]:
        listed = tomllib.loads((papers / study["key"] / "claims.toml").read_text(encoding="utf-8"))["claim"]
        claims = {claim["id"]: claim for claim in listed}
        for experiment in study["experiments"]:
            samples = results / study["key"] / experiment["id"] / "samples.parquet"
            for found in experiment["claims"]:
                faults = list(wrong(claims[found["id"]], found))
                if is_folder:
                    faults += sampled(samples, claims[found["id"]], found)
                yield found["id"], faults


def main(arguments: list[str] | None = None) -> int:
    """Runs the check and returns its exit status."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("results", type=Path, metavar="RESULTS")
    parser.add_argument("--papers", type=Path, default=Path(__file__).resolve().parents[1] / "papers")
    options = parser.parse_args(arguments)
    try:
        found = list(checked(options.results, options.papers))
    except (OSError, ValueError, KeyError, lzma.LZMAError) as error:
        print(f"{options.results}: {error}; name what `anabranch papers store` or `reproduce` wrote", file=sys.stderr)
        return 2
    for name, faults in found:
        for fault in faults:
            print(f"{name}: {fault}")
    bad = sum(bool(faults) for _, faults in found)
    print(f"{len(found)} claims, {len(found) - bad} agree with the stored figures")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
