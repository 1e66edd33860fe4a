"""Reports: one HTML file with tables, figures and the timeline of runs.

The book's chapter "Reports" says what is in them.
"""

from __future__ import annotations

from anabranch.report.choice import ChoiceError
from anabranch.report.document import ReportWarning, write

__all__ = ["ChoiceError", "ReportWarning", "write"]
