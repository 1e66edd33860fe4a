"""Measures of experiments: functions with unit, definition and source.

Those in `of_runs` and `of_video` are computed from the tables of a sweep, those in `of_trace` from traces of its runs.
"""

from __future__ import annotations

from anabranch.experiments.measures import of_runs, of_trace, of_video
from anabranch.experiments.measures.definition import MEASURES, Definition

__all__ = ["MEASURES", "Definition", "of_runs", "of_trace", "of_video"]
