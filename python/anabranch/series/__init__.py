"""Traces of one run as data frames."""

from anabranch.series.series import Series, read_trace
from anabranch.series.temporary import TemporaryFolder

__all__ = ["Series", "TemporaryFolder", "read_trace"]
