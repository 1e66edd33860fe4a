"""Means with their intervals, paired differences, Jain's index and linear regressions of results.

Every function takes a `Results` or a pandas frame of its `runs`. The samples of an interval are always seeds by
default: values of one seed at several points of a sweep are averaged first. A missing value (NaN) is omitted and
counted in `left_out`. A duplicate row is an error, because a run repeated with its seed is the same run and not another
sample. Runs that failed count with their figures.

SciPy and statsmodels do the computations.
"""

from __future__ import annotations

from anabranch.errors import StatisticsError
from anabranch.estimate import Estimate, mean_interval
from anabranch.statistics.jain import jain_index, jain_indices
from anabranch.statistics.paired import paired_difference
from anabranch.statistics.regression import Regression, linear_regression
from anabranch.statistics.scheme_regressions import regression_table, regressions
from anabranch.statistics.summaries import as_text, summary

__all__ = [
    "Estimate",
    "Regression",
    "StatisticsError",
    "as_text",
    "jain_index",
    "jain_indices",
    "linear_regression",
    "mean_interval",
    "paired_difference",
    "regression_table",
    "regressions",
    "summary",
]
