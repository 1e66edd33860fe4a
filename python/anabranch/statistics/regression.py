"""Least-squares lines through results."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias

import numpy as np
import pandas as pd

from anabranch.errors import StatisticsError
from anabranch.statistics.estimate import check_interval
from anabranch.statistics.quantity import numbers_of
from anabranch.statistics.samples import Source, Table, collapsed, named, samples_of

Regressors: TypeAlias = "Sequence[float] | np.ndarray | Mapping[str, Sequence[float]] | pd.DataFrame"
PointsOf = Literal["points", "runs"]

_INTERCEPT = "intercept"


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """y = intercept + Σ slope · x by ordinary least squares, with what the regression table of the DB-CMT paper has
    (section 5.2.3, equations 7 and 8, Table 10).

    `coefficients` has a row for the intercept and for each regressor; columns `estimate`, `standard_error`, `t`,
    `p_value`, `low` and `high`, the bounds at `confidence`. `n` counts points. `standard_error` is that of the
    regression, in the unit of y. `f` and `p_value` are of the hypothesis that all slopes are zero. `multiple_r` is
    the root of R², which has no sign: `correlation` has that of the slope. A fit without residuals has F infinite, a
    p-value of 0 and no errors.

    >>> line = linear_regression([1, 2, 3, 4], [2.1, 3.9, 6.2, 7.8])
    >>> print(line.equation(), round(line.r_squared, 4))
    y = 1.94x + 0.15 0.9957
    """

    y: str
    coefficients: pd.DataFrame
    n: int
    r_squared: float
    adjusted_r_squared: float
    standard_error: float
    f: float
    p_value: float
    confidence: float
    units: dict[str, str]
    _fit: Any = field(repr=False)

    @property
    def intercept(self) -> float:
        return float(self.coefficients.loc[_INTERCEPT, "estimate"])

    @property
    def regressors(self) -> list[str]:
        return [str(name) for name in self.coefficients.index if name != _INTERCEPT]

    @property
    def slope(self) -> float:
        """The slope of the only regressor; `StatisticsError` if there are several."""
        return float(self.coefficients.loc[self._only("slope"), "estimate"])

    @property
    def multiple_r(self) -> float:
        return math.sqrt(self.r_squared)

    @property
    def correlation(self) -> float:
        """Pearson's r of the only regressor and y."""
        return math.copysign(self.multiple_r, self.slope)

    def predict(self, x: Regressors) -> pd.DataFrame:
        """The line at `x`, with the bounds of the mean at `confidence`: columns `mean`, `low`, `high`."""
        columns = _columns(x, self.regressors)
        design = np.column_stack([np.ones(len(next(iter(columns.values())))), *columns.values()])
        frame = self._fit.get_prediction(design).summary_frame(alpha=1 - self.confidence)
        return pd.DataFrame({"mean": frame["mean"], "low": frame["mean_ci_lower"], "high": frame["mean_ci_upper"]})

    def equation(self) -> str:
        """`y = -115.6x + 1465`."""
        one = len(self.regressors) == 1
        slopes = self.coefficients["estimate"].drop(_INTERCEPT)
        terms = [f"{_number(slope)}{'x' if one else f'·{name}'}" for name, slope in slopes.items()]
        text = " + ".join([*terms, _number(self.intercept)])
        return f"y = {text}".replace("+ -", "- ")

    def __str__(self) -> str:
        head = [
            ("Multiple R", f"{self.multiple_r:.4f}"),
            ("R²", f"{self.r_squared:.4f}"),
            ("Adjusted R²", f"{self.adjusted_r_squared:.4f}"),
            ("Standard error", _number(self.standard_error)),
            ("Observations", str(self.n)),
            ("F", f"{self.f:.4g}"),
            ("p-value of F", f"{self.p_value:.3g}"),
        ]
        lines = [f"{name:16}{value:>12}" for name, value in head]
        table = self.coefficients.to_string(float_format=lambda value: f"{value:.4g}")
        return "\n".join([*lines, "", table])

    def _only(self, what: str) -> str:
        if len(self.regressors) != 1:
            raise StatisticsError(f"there is no one {what}, but one for each of {named(self.regressors)}")
        return self.regressors[0]


def linear_regression(x: Regressors, y: Sequence[float], confidence: float = 0.95) -> Regression:
    """Fits y to one regressor (a sequence) or to several (a mapping or frame with a sequence for each name).

    By statsmodels' OLS. Raises `StatisticsError` for lengths that differ, for values that are NaN or infinite, for
    fewer points than the coefficients and one more, for a regressor that is constant or follows from the others, and
    for a constant y, which has no R².
    """
    columns = _columns(x, None)
    values = np.asarray(y, dtype=float)
    _check(columns, values, confidence)
    import statsmodels.api as sm

    design = np.column_stack([np.ones(len(values)), *columns.values()])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise StatisticsError(f"of {named(columns)} one follows from the others; leave it out")
    fit = sm.OLS(values, design).fit()
    perfect = bool(np.abs(fit.resid).max() <= 1e-12 * np.abs(values).max())
    return Regression(
        y="y",
        coefficients=_coefficients(fit, [_INTERCEPT, *columns], perfect, confidence),
        n=int(fit.nobs),
        # Rounding can take R² of next to nothing below zero.
        r_squared=1.0 if perfect else max(float(fit.rsquared), 0.0),
        adjusted_r_squared=1.0 if perfect else float(fit.rsquared_adj),
        standard_error=0.0 if perfect else float(np.sqrt(fit.mse_resid)),
        f=math.inf if perfect else float(fit.fvalue),
        p_value=0.0 if perfect else float(fit.f_pvalue),
        confidence=confidence,
        units=dict.fromkeys(columns, ""),
        _fit=fit,
    )


def _coefficients(fit: Any, names: list[str], perfect: bool, confidence: float) -> pd.DataFrame:
    """Estimates with their errors; those of a perfect fit are zero, not what rounding makes of them."""
    columns = {"estimate": fit.params}
    if perfect:
        columns |= {"standard_error": 0.0, "t": math.inf, "p_value": 0.0, "low": fit.params, "high": fit.params}
    else:
        bounds = fit.conf_int(alpha=1 - confidence)
        columns |= {"standard_error": fit.bse, "t": fit.tvalues, "p_value": fit.pvalues}
        columns |= {"low": bounds[:, 0], "high": bounds[:, 1]}
    return pd.DataFrame(columns, index=names)


def regressions(
    results: Source,
    on: str | Sequence[str] | None = None,
    metric: str = "goodput_kbps",
    *,
    points: PointsOf = "points",
    confidence: float = 0.95,
    table: Table | None = None,
) -> dict[str, Regression]:
    """A regression of `metric` on one or several swept keys, for each scheme.

    `on` may be left out if one key is swept. With `points="points"` y are the means over seeds at each point, as in
    the DB-CMT paper, whose lines go through eleven means; with `points="runs"` every run is a point. Quantities such
    as "45 ms" count in their unit, and losses in per cent, so a slope is per millisecond or per cent of loss; the
    unit of each regressor is in `units`. Raises `StatisticsError` as `linear_regression` does, and for values that
    are no numbers.
    """
    if points not in ("points", "runs"):
        raise StatisticsError(f"points={points!r}: expected 'points' or 'runs'")
    samples = samples_of(results, metric, table)
    keys = [on] if isinstance(on, str) else list(on or [])
    if not keys:
        if len(samples.over) != 1:
            raise StatisticsError(f"on= has to say what to regress on: swept are {named(samples.over)}")
        keys = list(samples.over)
    for key in keys:
        if key not in samples.over:
            raise StatisticsError(f"on={key!r} is no swept key; swept are {named(samples.over)}")
    values = collapsed(samples, [*keys, "scheme", *samples.parts], "seeds")
    if samples.parts and values[list(samples.parts)].drop_duplicates().shape[0] > 1:
        raise StatisticsError(f"`{metric}` has a value for each {samples.parts[0]}; give a frame with one of them only")
    if points == "points":
        values = (
            values.groupby([*keys, "scheme"], sort=False, dropna=False, observed=True)["value"].mean().reset_index()
        )
    return {
        str(scheme): _of_scheme(str(scheme), group, keys, metric, confidence)
        for scheme, group in values.groupby("scheme", sort=False, observed=True)
    }


def regression_table(lines: Mapping[str, Regression]) -> pd.DataFrame:
    """What `regressions` gave as one row per scheme, as Table 10 of the DB-CMT paper has it.

    Columns: `scheme`, `n`, `intercept`, `slope KEY` for each regressor, `multiple_r`, `r_squared`,
    `adjusted_r_squared`, `standard_error`, `f`, `p_value`.
    """
    names = ("multiple_r", "r_squared", "adjusted_r_squared", "standard_error", "f", "p_value")
    return pd.DataFrame(
        [
            {"scheme": scheme, "n": line.n, "intercept": line.intercept}
            | {f"slope {name}": line.coefficients.loc[name, "estimate"] for name in line.regressors}
            | {name: getattr(line, name) for name in names}
            for scheme, line in lines.items()
        ]
    )


def _of_scheme(scheme: str, group: pd.DataFrame, keys: list[str], metric: str, confidence: float) -> Regression:
    columns, units = {}, {}
    for key in keys:
        numbers = numbers_of(key, group[key])
        if numbers is None:
            raise StatisticsError(f"the values of `{key}` are no numbers: {named(dict.fromkeys(group[key]))}")
        columns[key], units[key] = list(numbers.values), numbers.unit
    try:
        line = linear_regression(columns, group["value"], confidence)
    except StatisticsError as error:
        raise StatisticsError(f"`{metric}` of {scheme}: {error}") from error
    return replace(line, y=metric, units=units)


def _columns(x: Regressors, names: list[str] | None) -> dict[str, np.ndarray]:
    """Regressors by name; those of a line in the order of `names`."""
    if isinstance(x, (Mapping, pd.DataFrame)):
        found = {str(name): np.asarray(x[name], dtype=float) for name in x}
        if names is not None:
            missing = [name for name in names if name not in found]
            if missing:
                raise StatisticsError(f"there are no values of {named(missing)}")
            return {name: found[name] for name in names}
        return found
    values = np.asarray(x, dtype=float)
    if values.ndim != 1:
        raise StatisticsError("x is a sequence of numbers, or a mapping or frame with one for each regressor")
    if names is not None and len(names) != 1:
        raise StatisticsError(f"give a mapping or frame with values of {named(names)}")
    return {names[0] if names else "x": values}


def _check(columns: dict[str, np.ndarray], y: np.ndarray, confidence: float) -> None:
    check_interval("t", confidence)
    if not columns:
        raise StatisticsError("there is nothing to regress on")
    n = len(y)
    for name, x in columns.items():
        if len(x) != n:
            raise StatisticsError(f"`{name}` has {len(x)} values and y has {n}")
    needed = len(columns) + 2
    if n < needed:
        raise StatisticsError(f"{n} points are too few for {len(columns) + 1} coefficients: there have to be {needed}")
    for name, values in [*columns.items(), ("y", y)]:
        if not np.isfinite(values).all():
            raise StatisticsError(f"`{name}` has a value that is NaN or infinite; leave such points out")
    for name, x in columns.items():
        if (x == x[0]).all():
            raise StatisticsError(f"`{name}` is {x[0]:g} at all points, so there is no slope")
    if (y == y[0]).all():
        raise StatisticsError(f"y is {y[0]:g} at all points: there is nothing to explain, and R² is not defined")


def _number(value: float) -> str:
    """With five digits, as the equations of the papers have them."""
    return np.format_float_positional(value, precision=5, fractional=False, trim="-")
