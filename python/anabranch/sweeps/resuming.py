"""Message about finished runs for a user who resumes them."""

from __future__ import annotations

from pathlib import Path

from anabranch.counting import counted


def finished_text(done: int, planned: int, *, is_minimum: bool = False) -> str:
    """Returns the number of finished runs. `is_minimum` is `True` if more than the planned ones may follow."""
    return f"{done} of {'at least ' if is_minimum else ''}{counted(planned, 'run is', 'runs are')} finished"


def resume_text(finished: str, folder: Path, again: str, lost: int = 0) -> str:
    """Returns the number of `finished` runs with their folder, and how to resume.

    The repeated call is named by `again`, such as "sweep". `lost` runs are not in the folder.
    """
    missing = f", {lost} of them could not be kept" if lost else ""
    return f"{finished} and kept in {folder}{missing}: the same {again} continues from there"
