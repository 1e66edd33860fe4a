"""Linear regression by least squares."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from anabranch.errors import StatisticsError
from anabranch.estimate import check_interval, significant
from anabranch.statistics.samples import named

Regressors: TypeAlias = "Sequence[float] | np.ndarray | Mapping[str, Sequence[float]] | pd.DataFrame"

_INTERCEPT = "intercept"

# Residuals below this fraction of the largest y are rounding errors.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Regression:
    """Fit of y = intercept + Σ slope · x by ordinary least squares, as in DB-CMT section 5.2.3 (equations 7, 8).

    `coefficients` has a row for the intercept and for each regressor; columns `estimate`, `standard_error`, `t`,
    `p_value`, `low` and `high`, the bounds at `confidence`. `n` counts points. `standard_error` is that of the
    regression, in the unit of y. `f` and `p_value` are of the hypothesis that all slopes are zero. `multiple_r` is the
    root of R², which has no sign; `correlation` has the sign of the slope. A fit without residuals has F infinite, a
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
        """Slope of the only regressor. Raises `StatisticsError` if there are several."""
        return float(self.coefficients.loc[self._only("slope"), "estimate"])

    @property
    def multiple_r(self) -> float:
        return math.sqrt(self.r_squared)

    @property
    def correlation(self) -> float:
        """Pearson's r of the only regressor and y."""
        return math.copysign(self.multiple_r, self.slope)

    def predict(self, x: Regressors) -> pd.DataFrame:
        """Returns the line at `x`, with the bounds of the mean at `confidence`: columns `mean`, `low`, `high`."""
        columns = _columns(x, self.regressors)
        design = np.column_stack([np.ones(len(next(iter(columns.values())))), *columns.values()])
        frame = self._fit.get_prediction(design).summary_frame(alpha=1 - self.confidence)
        return pd.DataFrame({"mean": frame["mean"], "low": frame["mean_ci_lower"], "high": frame["mean_ci_upper"]})

    def equation(self) -> str:
        """Returns the line as text, such as `y = -115.6x + 1465`."""
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
        table = self.coefficients.to_string(float_format=lambda value: significant(value, 4))
        return "\n".join([*lines, "", table])

    def _only(self, what: str) -> str:
        if len(self.regressors) != 1:
            raise StatisticsError(f"there is no one {what}, but one for each of {named(self.regressors)}")
        return self.regressors[0]


def linear_regression(x: Regressors, y: Sequence[float], confidence: float = 0.95) -> Regression:
    """Fits y to one regressor (a sequence) or to several (a mapping or frame with a sequence for each name).

    Uses statsmodels' OLS. Raises `StatisticsError` for different lengths, for values that are NaN or infinite, for
    fewer points than coefficients plus one, and for a regressor that is constant or a linear combination of the others.
    A constant y gives a flat line, whose R² and p-value are NaN because y has no variance.
    """
    columns = _columns(x, None)
    values = np.asarray(y, dtype=float)
    _check(columns, values, confidence)
    import statsmodels.api as sm

    design = np.column_stack([np.ones(len(values)), *columns.values()])
    if np.linalg.matrix_rank(design) < design.shape[1]:
        raise StatisticsError(f"of {named(columns)} one follows from the others; omit it")
    fit = sm.OLS(values, design).fit()
    perfect = bool(np.abs(fit.resid).max() <= _ROUNDING * np.abs(values).max())
    figures = _of_perfect_fit(values) if perfect else _of_fit(fit)
    return Regression(
        y="y",
        coefficients=_coefficients(fit, [_INTERCEPT, *columns], figures if perfect else None, confidence),
        n=int(fit.nobs),
        confidence=confidence,
        units=dict.fromkeys(columns, ""),
        _fit=fit,
        **figures,
    )


def _of_fit(fit: Any) -> dict[str, float]:
    return {
        # Rounding may make an R² near zero negative.
        "r_squared": max(float(fit.rsquared), 0.0),
        "adjusted_r_squared": float(fit.rsquared_adj),
        "standard_error": float(np.sqrt(fit.mse_resid)),
        "f": float(fit.fvalue),
        "p_value": float(fit.f_pvalue),
    }


def _of_perfect_fit(y: np.ndarray) -> dict[str, float]:
    """Returns the exact figures of a fit without residuals. A constant y has no variance, and therefore no R²."""
    if np.ptp(y) <= _ROUNDING * np.abs(y).max():
        return dict.fromkeys(("r_squared", "adjusted_r_squared", "f", "p_value"), math.nan) | {"standard_error": 0.0}
    ones = dict.fromkeys(("r_squared", "adjusted_r_squared"), 1.0)
    return ones | {"standard_error": 0.0, "f": math.inf, "p_value": 0.0}


def _coefficients(fit: Any, names: list[str], perfect: dict[str, float] | None, confidence: float) -> pd.DataFrame:
    """Returns estimates with their errors. Those of a perfect fit are set to zero, without rounding errors."""
    if perfect is None:
        bounds = fit.conf_int(alpha=1 - confidence)
        columns = {"estimate": fit.params, "standard_error": fit.bse, "t": fit.tvalues, "p_value": fit.pvalues}
        return pd.DataFrame({**columns, "low": bounds[:, 0], "high": bounds[:, 1]}, index=names)
    is_constant = math.isnan(perfect["f"])
    estimates = np.array([fit.model.endog[0], *[0.0] * (len(names) - 1)]) if is_constant else fit.params
    errors = {"standard_error": 0.0, "t": perfect["f"], "p_value": perfect["p_value"]}
    return pd.DataFrame({"estimate": estimates, **errors, "low": estimates, "high": estimates}, index=names)


def _columns(x: Regressors, names: list[str] | None) -> dict[str, np.ndarray]:
    """Returns regressors by name; those of a line in the order of `names`."""
    if isinstance(x, (Mapping, pd.DataFrame)):
        found = {str(name): np.asarray(x[name], dtype=float) for name in x}
        if names is not None:
            missing = [name for name in names if name not in found]
            if missing:
                raise StatisticsError(f"no values of {named(missing)}")
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
        raise StatisticsError("no regressor is given")
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


def _number(value: float) -> str:
    """Returns a number with five digits, as in the equations of the papers."""
    return np.format_float_positional(value + 0.0, precision=5, fractional=False, trim="-")
