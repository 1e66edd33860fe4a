"""Checks paths in backticks in the documents, and that the book's summary names every chapter; lychee checks the links.

A path belongs to this repository if its first part exists. It may contain `*` and may end in `::item` or `:line`.
Prints nonexistent paths, and exits with 1 if there are any.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs" / "src"
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^\s*(```|~~~)")
PATH = re.compile(r"^[\w.*-]+(/[\w.*-]+)*/?$")
# Exists only after a build or a run.
MADE = {"out", "target", "book"}


def documents():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def prose(text):
    """Yields the lines outside code blocks, with their numbers."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def is_path(text, tops):
    """Returns `True` if text in backticks is a path of this repository."""
    if not PATH.match(text):
        return False
    top = text.split("/")[0]
    return top not in MADE and (("/" in text and top in tops) or (text in tops and "." in text.strip(".")))


def check_path(text):
    if "*" in text:
        return None if any(ROOT.glob(text.rstrip("/"))) else f"`{text}` matches nothing"
    return None if (ROOT / text).exists() else f"`{text}` does not exist"


def problems():
    # Directories that a wrong path may begin with although the repository no longer has them.
    tops = {entry.name for entry in ROOT.iterdir()} | {"crates", "docs", "tests", "scenarios", "fuzz"}
    for file in documents():
        here = file.relative_to(ROOT)
        for number, line in prose(file.read_text(encoding="utf-8")):
            paths = [re.sub(r"(::.*|:\d+)$", "", code) for code in CODE.findall(line)]
            found = [check_path(path) for path in paths if is_path(path, tops)]
            yield from (f"{here}:{number}: {problem}" for problem in found if problem)
    summary = (BOOK / "SUMMARY.md").read_text(encoding="utf-8")
    for chapter in sorted(BOOK.rglob("*.md")):
        name = chapter.relative_to(BOOK).as_posix()
        if name != "SUMMARY.md" and f"({name})" not in summary:
            yield f"docs/src/SUMMARY.md: {name} is not in it"


def main():
    found = list(problems())
    for problem in found:
        print(problem)
    print(f"paths: {len(found)} problems" if found else f"paths: nothing wrong in {len(documents())} documents")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
