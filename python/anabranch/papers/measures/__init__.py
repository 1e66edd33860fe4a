"""Everything the papers measure, each in one place with unit, definition and source.

Those in `of_runs` come from the tables of a sweep, those in `of_trace` from traces of its runs.
"""

from __future__ import annotations

from anabranch.papers.measures.definition import Definition
from anabranch.papers.measures.of_runs import DEFINITIONS as OF_RUNS
from anabranch.papers.measures.of_trace import DEFINITIONS as OF_TRACE

__all__ = ["MEASURES", "Definition"]

MEASURES: dict[str, Definition] = {definition.name: definition for definition in (*OF_RUNS, *OF_TRACE)}
