"""Differences to a baseline, seed by seed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from anabranch.errors import StatisticsError
from anabranch.estimate import Estimate, check_interval, mean_interval
from anabranch.statistics.samples import ResultsLike, Table, as_list, collapsed, named, samples_of
from anabranch.statistics.summaries import columns_of


def paired_difference(
    results: ResultsLike,
    baseline: str = "cmt",
    metric: str = "goodput_kbps",
    relative: bool = False,
    *,
    by: str | Sequence[str] | None = None,
    confidence: float = 0.95,
    table: Table | None = None,
) -> pd.DataFrame:
    """Returns the differences of each scheme to `baseline` under the same seeds.

    Runs with one seed have the same channel, so their differences scatter less than the runs do. The result contains,
    for each point and each other scheme, the mean over seeds of value - baseline, its t-interval, and the p-value of
    the paired t-test (`scipy.stats.ttest_rel`) for the hypothesis of no difference. If `relative` is set, each
    difference is first divided by the baseline's value for the same seed: a mean of 0.16 is 16 % more.

    One row per point and scheme; columns: those of `by`, `baseline`, `metric`, `n` (pairs), `mean`, `half_width`,
    `low`, `high`, `std`, `kind`, `p_value`, `unpaired`, `relative`, `interval`, `confidence`. `unpaired` counts the
    seeds that have a value of only one of the two; they are omitted. If all differences are equal, `kind` is
    "deterministic", and half-width and p-value are NaN, as for a single pair. `by` is that of `summary` and must
    contain `scheme`. If it omits swept keys, both values are means over their points.

    Raises `StatisticsError` if the baseline or the metric does not exist, if a scheme and the baseline have no seed in
    common, and with `relative` for a baseline of zero.

    >>> import pandas
    >>> runs = pandas.DataFrame({
    ...     "scheme": ["cmt", "cmt", "cmt", "cmt-pf", "cmt-pf", "cmt-pf"], "seed": [1, 2, 3, 1, 2, 3],
    ...     "goodput_kbps": [1000.0, 2000.0, 3000.0, 1100.0, 2090.0, 3110.0],
    ... })
    >>> paired_difference(runs)[["scheme", "n", "mean", "half_width"]].round(2).to_dict("records")
    [{'scheme': 'cmt-pf', 'n': 3, 'mean': 100.0, 'half_width': 24.84}]
    """
    check_interval("t", confidence)
    samples = samples_of(results, metric, table, as_list(by, []))
    groups = as_list(by, samples.groups)
    if "scheme" not in groups:
        raise StatisticsError(f"by={groups!r} has to have `scheme`, which is what is compared")
    values = collapsed(samples, groups, "seeds")
    schemes = list(dict.fromkeys(values["scheme"]))
    if baseline not in schemes:
        raise StatisticsError(f"unknown scheme `{baseline}` to compare with; there are {named(schemes)}")
    if schemes == [baseline]:
        raise StatisticsError(f"`{baseline}` is the only scheme; add another one to compare")
    rows = [
        dict(zip(groups, key, strict=True))
        | {"baseline": baseline, "metric": metric}
        | _compared(group, _where(groups, key), baseline, metric, relative, confidence)
        | {"relative": relative, "interval": "t", "confidence": confidence}
        for key, group in _pairs(values, groups, baseline)
    ]
    return pd.DataFrame(rows)


def _pairs(values: pd.DataFrame, groups: list[str], baseline: str) -> list[tuple[tuple[Any, ...], pd.DataFrame]]:
    """Returns, for each group but the baseline's, its values and the baseline's, one row per seed of either."""
    point = [key for key in groups if key != "scheme"]
    columns = [*point, "seed", "value"]
    base = values[values["scheme"] == baseline][columns]
    found = []
    for key, group in values[values["scheme"] != baseline].groupby(groups, sort=False, dropna=False, observed=True):
        here = base
        for name, value in zip(groups, key, strict=True):
            if name != "scheme":
                here = here[here[name].isna() if pd.isna(value) else here[name] == value]
        pairs = group[["seed", "value"]].merge(here[["seed", "value"]], on="seed", how="outer", suffixes=("", "_base"))
        found.append((key, pairs))
    return found


def _compared(
    pairs: pd.DataFrame, where: str, baseline: str, metric: str, relative: bool, confidence: float
) -> dict[str, Any]:
    complete = pairs.dropna()
    if complete.empty:
        raise StatisticsError(f"{where}: no seed has `{metric}` for both this scheme and the baseline `{baseline}`")
    unpaired = int((pairs["value"].notna() ^ pairs["value_base"].notna()).sum())
    ours, base = complete["value"].to_numpy(), complete["value_base"].to_numpy()
    if relative:
        if (base == 0).any():
            raise StatisticsError(f"{where}: `{metric}` of `{baseline}` is 0, so no difference is relative to it")
        ours, base = ours / base, np.ones_like(base)
    estimate, p_value = _estimate(ours, base, confidence)
    return columns_of(estimate) | {"p_value": p_value, "unpaired": unpaired}


def _estimate(ours: np.ndarray, base: np.ndarray, confidence: float) -> tuple[Estimate, float]:
    differences = ours - base
    n = len(differences)
    # Equal differences of unequal values may differ by the rounding of the subtractions.
    rounding = 4 * np.finfo(float).eps * float(np.maximum(np.abs(ours), np.abs(base)).max())
    if n > 1 and np.ptp(differences) <= rounding:
        mean = float(np.median(differences))
        return Estimate(n, mean, math.nan, 0.0, "deterministic", "t", confidence), math.nan
    if n == 1:
        return mean_interval(differences, "t", confidence), math.nan
    from scipy import stats

    test = stats.ttest_rel(ours, base)
    low, high = test.confidence_interval(confidence)
    mean, std = float(differences.mean()), float(differences.std(ddof=1))
    return Estimate(n, mean, float(high - low) / 2, std, "interval", "t", confidence), float(test.pvalue)


def _where(groups: list[str], key: tuple[Any, ...]) -> str:
    return ", ".join(f"{name} {value}" for name, value in zip(groups, key, strict=True))
