"""Linear regressions of results, one for each scheme."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd

from anabranch.errors import StatisticsError
from anabranch.quantity import numbers_of
from anabranch.statistics.regression import Regression, linear_regression
from anabranch.statistics.samples import ResultsLike, Table, collapsed, named, samples_of

PointsOf = Literal["points", "runs"]


def regressions(
    results: ResultsLike,
    on: str | Sequence[str] | None = None,
    metric: str = "goodput_kbps",
    *,
    points: PointsOf = "points",
    confidence: float = 0.95,
    table: Table | None = None,
) -> dict[str, Regression]:
    """Returns a regression of `metric` on one or several swept keys, for each scheme.

    `on` may be omitted if one key is swept. With `points="points"` y are the means over seeds at each point, as in the
    DB-CMT paper, whose lines fit eleven means. With `points="runs"` every run is a point. Quantities such as "45 ms"
    count in their unit, and losses in per cent, so a slope is per millisecond or per cent of loss. The unit of each
    regressor is in `units`. Raises the errors of `linear_regression`, and `StatisticsError` for values that are no
    numbers.
    """
    if points not in ("points", "runs"):
        raise StatisticsError(f"points={points!r}: expected 'points' or 'runs'")
    samples = samples_of(results, metric, table)
    keys = [on] if isinstance(on, str) else list(on or [])
    if not keys:
        if len(samples.over) != 1:
            raise StatisticsError(f"on= has to name the regressors: swept are {named(samples.over)}")
        keys = list(samples.over)
    for key in keys:
        if key not in samples.over:
            raise StatisticsError(f"on={key!r} is not a swept key; swept are {named(samples.over)}")
    values = collapsed(samples, [*keys, "scheme", *samples.parts], "seeds")
    if samples.parts and values[list(samples.parts)].drop_duplicates().shape[0] > 1:
        raise StatisticsError(f"`{metric}` has a value for each {samples.parts[0]}; give a frame with one of them only")
    if points == "points":
        values = (
            values.groupby([*keys, "scheme"], sort=False, dropna=False, observed=True)["value"].mean().reset_index()
        )
    scales = {key: _Scale.of(key, values[key]) for key in keys}
    return {
        str(scheme): _of_scheme(str(scheme), group, scales, metric, confidence)
        for scheme, group in values.groupby("scheme", sort=False, observed=True)
    }


def regression_table(lines: Mapping[str, Regression]) -> pd.DataFrame:
    """Returns the result of `regressions` as one row per scheme.

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


@dataclass(frozen=True, slots=True)
class _Scale:
    """Values of a swept key as numbers in one unit, which is the same for all schemes."""

    numbers: dict[Any, float]
    unit: str

    @classmethod
    def of(cls, key: str, values: pd.Series[Any]) -> _Scale:
        distinct = list(dict.fromkeys(values))
        found = numbers_of(key, distinct)
        if found is None:
            raise StatisticsError(f"the values of `{key}` are no numbers: {named(distinct)}")
        return cls(dict(zip(distinct, found.values, strict=True)), found.unit)


def _of_scheme(
    scheme: str, group: pd.DataFrame, scales: Mapping[str, _Scale], metric: str, confidence: float
) -> Regression:
    columns = {key: [scale.numbers[value] for value in group[key]] for key, scale in scales.items()}
    try:
        line = linear_regression(columns, group["value"], confidence)
    except StatisticsError as error:
        raise StatisticsError(f"`{metric}` of {scheme}: {error}") from error
    return replace(line, y=metric, units={key: scale.unit for key, scale in scales.items()})
