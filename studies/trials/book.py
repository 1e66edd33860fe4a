"""Parts of a page that a command makes: what stands between their markers is replaced, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from anabranch.errors import PlanError


def write_parts(page: Path, parts: Mapping[str, str]) -> None:
    """Writes parts between `<!-- limit: NAME begin -->` and `<!-- limit: NAME end -->`.

    Raises `PlanError` if the page cannot be read or lacks a marker.
    """
    text = _read(page)
    for name, part in parts.items():
        text = replaced(text, name, part, page)
    page.write_text(text, encoding="utf-8")


def check_parts(page: Path, names: Collection[str]) -> None:
    """Raises `PlanError` if `write_parts` would."""
    text = _read(page)
    for name in names:
        replaced(text, name, "", page)


def _read(page: Path) -> str:
    try:
        return page.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise PlanError(f"{page}: cannot be read: {error}") from error


def replaced(text: str, name: str, part: str, page: Path) -> str:
    """The text with a part between its markers."""
    begin, end = f"<!-- limit: {name} begin -->", f"<!-- limit: {name} end -->"
    marked = re.compile(rf"{re.escape(begin)}\n.*?{re.escape(end)}", re.DOTALL)
    if len(marked.findall(text)) != 1:
        raise PlanError(f"{page}: needs {begin} and {end} once, each on a line of its own")
    return marked.sub(lambda _: f"{begin}\n{part.strip()}\n{end}", text)
