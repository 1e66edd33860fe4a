"""The generated parts of the chapter: what stands between markers is replaced, and nothing else."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from anabranch.errors import AnabranchError

CHAPTER = "which-scheme.md"
PICTURES = "which-scheme"


class BookError(AnabranchError):
    """The book has no place for what was made."""


def begin(name: str) -> str:
    """The marker before a part."""
    return f"<!-- which-scheme: {name} begin -->"


def end(name: str) -> str:
    """The marker after a part."""
    return f"<!-- which-scheme: {name} end -->"


def refresh(book: Path, parts: Mapping[str, str], pictures: Path) -> list[Path]:
    """Writes the parts between their markers in the chapter, and copies the pictures that it shows beside it.

    Gives what was written. Raises `BookError` if there is no chapter, or it lacks one of the markers.
    """
    chapter = book / CHAPTER
    try:
        text = chapter.read_text(encoding="utf-8")
    except OSError as error:
        raise BookError(f"{chapter}: cannot be read: {error.strerror}: --book names the book's sources") from error
    for name, part in parts.items():
        text = replaced(text, name, part, chapter)
    shown = [pictures / name for name in re.findall(rf"\]\({PICTURES}/([\w.+-]+\.svg)\)", text)]
    if missing := [picture for picture in shown if not picture.is_file()]:
        raise BookError(f"{chapter}: shows {missing[0].name}, which is not in {pictures}")
    chapter.write_text(text, encoding="utf-8")
    (book / PICTURES).mkdir(exist_ok=True)
    for old in (book / PICTURES).glob("*.svg"):
        old.unlink()
    return [chapter, *(Path(shutil.copy(picture, book / PICTURES)) for picture in shown)]


def replaced(text: str, name: str, part: str, chapter: Path) -> str:
    """The chapter with a part between its markers."""
    before, after = begin(name), end(name)
    marked = re.compile(rf"{re.escape(before)}\n.*?{re.escape(after)}", re.DOTALL)
    if len(marked.findall(text)) != 1:
        raise BookError(f"{chapter}: needs {before} and {after} once, each on a line of its own")
    return marked.sub(lambda _: f"{before}\n{part.strip()}\n{after}", text)
