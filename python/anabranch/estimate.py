"""Means with their confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from anabranch.errors import StatisticsError

Interval = Literal["t", "normal"]
Kind = Literal["interval", "deterministic", "single", "none"]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Mean of a sample.

    `kind` is the meaning of `half_width`: that of the confidence interval ("interval"), or NaN because all values are
    equal ("deterministic"), because there is only one ("single") or none ("none"). `std` is the sample's standard
    deviation, with n - 1; NaN for fewer than two values. All are in the unit of the values.

    >>> print(mean_interval([1180.0, 1234.0, 1288.0]))
    1234 ± 134 (n = 3)
    >>> print(mean_interval([1234.0, 1234.0]))
    1234 (deterministic)
    >>> print(mean_interval([1234.0]))
    1234 (n = 1)
    """

    n: int
    mean: float
    half_width: float
    std: float
    kind: Kind
    interval: Interval = "t"
    confidence: float = 0.95

    @property
    def low(self) -> float:
        """Lower end of the interval, NaN without one."""
        return self.mean - self.half_width

    @property
    def high(self) -> float:
        """Upper end of the interval, NaN without one."""
        return self.mean + self.half_width

    def __str__(self) -> str:
        return text_of(self.mean, self.half_width, self.n, self.kind)


def mean_interval(values: Iterable[float], interval: Interval = "t", confidence: float = 0.95) -> Estimate:
    """Returns the mean of `values` and its confidence interval, without NaN values.

    `interval="t"` is Student's: t((1 + confidence) / 2, n - 1) · s / √n, as `anabranch run` prints it.
    `interval="normal"` uses the quantile of the normal distribution instead, as equation 6 of the DB-CMT paper and
    equation 6 of the CMT-QA paper. The quantile is rounded to three decimals, as in Table 1 of the CMT-QA paper (1.96
    for 95 %). In both, s is the sample's standard deviation, with n - 1. The normal interval is too narrow for fewer
    than about thirty values.

    Raises `StatisticsError` for an infinite value, and for a confidence outside 0 to 1.
    """
    check_interval(interval, confidence)
    sample = np.asarray(list(values), dtype=float)
    sample = sample[~np.isnan(sample)]
    if not np.isfinite(sample).all():
        raise StatisticsError("a sample with an infinite value has no mean")
    n = len(sample)
    if n == 0:
        return Estimate(0, math.nan, math.nan, math.nan, "none", interval, confidence)
    if n == 1:
        return Estimate(1, float(sample[0]), math.nan, math.nan, "single", interval, confidence)
    if (sample == sample[0]).all():
        return Estimate(n, float(sample[0]), math.nan, 0.0, "deterministic", interval, confidence)
    half_width = quantile(interval, confidence, n) * _standard_error(sample)
    return Estimate(
        n, float(sample.mean()), float(half_width), float(sample.std(ddof=1)), "interval", interval, confidence
    )


def check_interval(interval: str, confidence: float) -> None:
    """Raises `StatisticsError` unless both are valid."""
    if interval not in get_args(Interval):
        raise StatisticsError(f"interval={interval!r}: expected one of {', '.join(map(repr, get_args(Interval)))}")
    if not 0 < confidence < 1:
        raise StatisticsError(f"confidence={confidence!r}: expected a number between 0 and 1, such as 0.95")


def quantile(interval: Interval, confidence: float, n: int) -> float:
    """Returns the factor of the standard error in the half width of an interval."""
    from scipy import stats

    upper = 0.5 + confidence / 2
    if interval == "t":
        return float(stats.t.ppf(upper, n - 1))
    return round(float(stats.norm.ppf(upper)), 3)


def _standard_error(sample: np.ndarray) -> float:
    from scipy import stats

    return float(stats.sem(sample))


def text_of(mean: float, half_width: float, n: int, kind: str) -> str:
    """Returns an estimate in the format of `anabranch run`: `1234 ± 56 (n = 20)`, `1234 (deterministic)`."""
    digits = decimals(mean)
    match kind:
        case "interval":
            return f"{rounded(mean, digits)} ± {rounded(half_width, digits)} (n = {n})"
        case "deterministic":
            return f"{rounded(mean, digits)} (deterministic)"
        case "single":
            return f"{rounded(mean, digits)} (n = 1)"
        case _:
            return "no value"


def decimals(value: float) -> int:
    """Returns the decimals of a mean: four significant digits from 0.1 on, and three below it."""
    size = abs(value)
    if size >= 1000:
        return 0
    if size >= 100:
        return 1
    if size >= 0.1 or size == 0 or math.isnan(size):
        return 2
    return min(2 - math.floor(math.log10(size)), 12)


def rounded(value: float, digits: int, sign: str = "-") -> str:
    """Returns `value` with `digits` decimals. `sign="+"` adds the sign of positive values; a zero never has a sign.

    >>> rounded(-0.04, 1), rounded(0.04, 1, "+"), rounded(1.25, 1, "+")
    ('0.0', '0.0', '+1.2')
    """
    text = f"{value:{sign}.{digits}f}"
    return text.lstrip("+-") if float(text) == 0 else text


def significant(value: float, digits: int) -> str:
    """Returns `value` with `digits` significant digits. A zero has no sign."""
    return f"{value + 0.0:.{digits}g}"
