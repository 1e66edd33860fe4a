"""Means and intervals as a table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from anabranch.errors import StatisticsError
from anabranch.estimate import Estimate, Interval, check_interval, mean_interval, text_of
from anabranch.statistics.samples import ResultsLike, SampleOf, Table, as_list, collapsed, samples_of


def summary(
    results: ResultsLike,
    metric: str = "goodput_kbps",
    by: str | Sequence[str] | None = None,
    interval: Interval = "t",
    confidence: float = 0.95,
    *,
    samples: SampleOf = "seeds",
    table: Table | None = None,
) -> pd.DataFrame:
    """Returns the mean of `metric` in each group of `by`, with its interval.

    One row per group, in the order of the results; columns: those of `by`, then `metric`, `n`, `mean`, `half_width`,
    `low`, `high`, `std`, `kind`, `left_out`, `interval`, `confidence`. `mean`, `half_width`, `low`, `high` and `std`
    have the unit of the metric. `kind` is "interval", "deterministic" if several samples are all equal, "single" if n =
    1, or "none" if no run has a value. The last three have a NaN half-width. `left_out` counts samples without a value.

    By default, a group is a point of the sweep and a scheme, and for metrics of paths or flows also a path or flow. If
    `by` omits swept keys, the samples are the means of each seed over their points, of those seeds that have a value at
    all of them, as in the column `mean` of `anabranch run --sweep`. With `samples="points"` they are the means of each
    point over its seeds: the interval is then the scatter over the chosen points. The delay-based fast retransmission
    paper prints such intervals (half-widths of 1.96 · s / √10 over ten loss rates).

    If `table` is not given, the metric is taken from the first of runs, flows and paths that contains it. See
    `mean_interval` for `interval`. Raises `StatisticsError` for a metric or column that does not exist, for a metric
    that is not a number or infinite, and for duplicate rows.

    >>> import pandas
    >>> runs = pandas.DataFrame({"scheme": ["cmt"] * 3, "seed": [1, 2, 3], "goodput_kbps": [1180.0, 1234.0, 1288.0]})
    >>> summary(runs)[["scheme", "n", "mean", "half_width"]].round(1).to_dict("records")
    [{'scheme': 'cmt', 'n': 3, 'mean': 1234.0, 'half_width': 134.1}]
    """
    check_interval(interval, confidence)
    chosen = samples_of(results, metric, table, as_list(by, []))
    groups = as_list(by, chosen.groups)
    if not groups:
        raise StatisticsError("by=[] names no column to group by; omit it to group by point and scheme")
    values = collapsed(chosen, groups, samples)
    rows = [
        dict(zip(groups, key, strict=True))
        | {"metric": metric}
        | columns_of(mean_interval(group["value"], interval, confidence))
        | {"left_out": int(group["left_out"].sum()), "interval": interval, "confidence": confidence}
        for key, group in values.groupby(groups, sort=False, dropna=False, observed=True)
    ]
    names = [*groups, "metric", *_COLUMNS, "left_out", "interval", "confidence"]
    return pd.DataFrame(rows, columns=names)


_COLUMNS = ("n", "mean", "half_width", "low", "high", "std", "kind")


def columns_of(estimate: Estimate) -> dict[str, Any]:
    """Returns an estimate as columns of a table."""
    return {name: getattr(estimate, name) for name in _COLUMNS}


def as_text(table: pd.DataFrame) -> list[str]:
    """Returns each row of `summary` or `paired_difference` as text: `1234 ± 56 (n = 20)`.

    >>> import pandas
    >>> runs = pandas.DataFrame({"scheme": ["cmt"] * 2, "seed": [1, 2], "goodput_kbps": [1234.0, 1234.0]})
    >>> as_text(summary(runs))
    ['1234 (deterministic)']
    """
    missing = [name for name in ("mean", "half_width", "n", "kind") if name not in table.columns]
    if missing:
        raise StatisticsError(f"expected a table of `summary` or `paired_difference`; it has no column `{missing[0]}`")
    rows = zip(table["mean"], table["half_width"], table["n"], table["kind"], strict=True)
    return [text_of(mean, half_width, n, kind) for mean, half_width, n, kind in rows]
