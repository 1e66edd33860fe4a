"""Reports: one HTML file with tables, figures and the timeline of runs.

The book's chapter "Reports" describes their content.
"""

from __future__ import annotations

from anabranch.reporting.choice import ChoiceError
from anabranch.reporting.document import ReportWarning, report

__all__ = ["ChoiceError", "ReportWarning", "report"]
