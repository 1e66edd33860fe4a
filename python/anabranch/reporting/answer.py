"""Answer of a report: a sentence for each compared scheme."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from anabranch.reporting.points import value_text, varied_keys
from anabranch.statistics import as_text, paired_difference, summary

if TYPE_CHECKING:
    import pandas as pd

    from anabranch.results import Results

_METRIC = "goodput_kbps"
# The scheme of RFC 9260, which uses one path at a time.
_ONE_PATH = "sctp"
_FEWEST_PATHS = 2
_NUMBERS = {2: "Two", 3: "Three", 4: "Four", 5: "Five", 6: "Six", 7: "Seven", 8: "Eight"}
# Maximum number of schemes with a sentence. The tables have the others.
_MAX_LINES = 4
# Maximum number of points that are named individually.
_FEW = 2


def answer(results: Results, baseline: str | None) -> tuple[str, ...]:
    """Returns sentences that compare the schemes' goodput with the baseline's, or report that of the only scheme."""
    if results.runs.num_rows == 0:
        return ()
    if baseline is None:
        return (_alone(results),)
    if 0 in results.runs["goodput_kbps"].to_pylist():
        # A difference relative to a goodput of zero is undefined.
        return ()
    differences = paired_difference(results, baseline, _METRIC, relative=True)
    schemes = list(dict.fromkeys(differences["scheme"]))
    lines = [
        _compared(scheme, baseline, differences[differences["scheme"] == scheme], results.over) for scheme in schemes
    ]
    more = len(lines) - _MAX_LINES
    rest = [f"The tables have {more} more schemes."] if more > 0 else []
    return (*_paths_beside_one(results, baseline), *lines[:_MAX_LINES], *rest)


def _paths_beside_one(results: Results, baseline: str) -> tuple[str, ...]:
    """Compares several paths with one, if a scheme that uses one path at a time is among the compared ones."""
    several = next((scheme for scheme in (baseline, *results.schemes) if scheme != _ONE_PATH), None)
    paths = len(set(results.to_arrow("paths")["path"].to_pylist()))
    if _ONE_PATH not in results.schemes or several is None or paths < _FEWEST_PATHS:
        return ()
    means = summary(results, _METRIC)
    keys = list(results.over)
    many, one = (
        means[means["scheme"] == scheme].set_index(keys or "metric")["mean"] for scheme in (several, _ONE_PATH)
    )
    ratios = (many / one).dropna()
    if ratios.empty:
        return ()
    low, high = f"{ratios.min():.2g}", f"{ratios.max():.2g}"
    times = low if low == high else f"{low} to {high}"
    points = f", over {len(ratios)} points" if len(ratios) > 1 else ""
    number = _NUMBERS.get(paths, str(paths))
    return (f"{number} paths carry {times} times as much as one ({several} beside {_ONE_PATH}{points}).",)


def _alone(results: Results) -> str:
    means = summary(results, _METRIC)
    scheme = means["scheme"].iloc[0]
    if len(means) == 1:
        return f"The goodput of {scheme} is {as_text(means)[0]} kbit/s."
    low, high = means["mean"].idxmin(), means["mean"].idxmax()
    where = [_named(means.loc[at], results.over, means) for at in (low, high)]
    least, most = f"{means['mean'][low]:.0f}", f"{means['mean'][high]:.0f}"
    return f"The goodput of {scheme} goes from {least} kbit/s {where[0]} to {most} kbit/s {where[1]}."


def _compared(scheme: str, baseline: str, rows: pd.DataFrame, over: Sequence[str]) -> str:
    """Returns the sentence on where a scheme carries more than the baseline, less, and as much."""
    # If there is no interval (a single pair, or pairs that are all equal), the mean decides.
    low = rows["low"].where(rows["kind"] == "interval", rows["mean"])
    high = rows["high"].where(rows["kind"] == "interval", rows["mean"])
    ahead, behind = rows[low > 0], rows[high < 0]
    level = len(rows) - len(ahead) - len(behind)
    parts = []
    if len(ahead):
        parts.append(_by(ahead, rows, over, f"more than {baseline}"))
    if len(behind):
        # The baseline is named once.
        parts.append(_by(behind, rows, over, "less" if parts else f"less than {baseline}"))
    if not parts:
        return f"{scheme} carries as much as {baseline}{_everywhere(rows)}.{_caution(rows)}"
    if level:
        parts.append("as much elsewhere")
    return f"{scheme} carries {', '.join(parts[:-1])}{' and ' if parts[:-1] else ''}{parts[-1]}.{_caution(rows)}"


def _by(found: pd.DataFrame, rows: pd.DataFrame, over: Sequence[str], than: str) -> str:
    """Returns a phrase such as `1.2 ± 0.8 % more than cmt at path.path-2.loss = 0.1`."""
    sizes = found["mean"].abs() * 100
    if len(found) == 1:
        half = found["half_width"].iloc[0] * 100
        size = f"{_size(sizes.iloc[0])} %" if half != half else f"{_size(sizes.iloc[0])} ± {_size(half)} %"
    else:
        low, high = _size(sizes.min()), _size(sizes.max())
        size = f"{low} %" if low == high else f"{low} to {high} %"
    return f"{size} {than}{_where(found, rows, over)}"


def _size(percent: float) -> str:
    return f"{percent:.0f}" if percent >= 9.95 else f"{percent:.1f}" if percent >= 0.095 else f"{percent:.2g}"


def _where(found: pd.DataFrame, rows: pd.DataFrame, over: Sequence[str]) -> str:
    if len(found) == len(rows):
        return _everywhere(rows)
    if len(found) <= _FEW:
        return " " + " and ".join(_named(row, over, rows) for _, row in found.iterrows())
    return f" at {len(found)} of {len(rows)} points"


def _named(row: pd.Series[object], over: Sequence[str], rows: pd.DataFrame) -> str:
    """Returns the point of a row, by the keys that differ between the rows."""
    points = [{key: each[key] for key in over} for _, each in rows.iterrows()]
    point = {key: row[key] for key in over}
    keys = varied_keys(points) or list(over)
    return "at " + ", ".join(f"{key} = {value_text(point[key])}" for key in keys)


def _everywhere(rows: pd.DataFrame) -> str:
    return f" at all {len(rows)} points" if len(rows) > 1 else ""


def _caution(rows: pd.DataFrame) -> str:
    return " That is of one seed each, which is no evidence." if (rows["kind"] == "single").all() else ""
