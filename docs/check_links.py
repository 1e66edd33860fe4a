"""Checks that what the documents point to exists. Prints what does not and exits with 1 if there is any.

Checked are relative links with their anchors, paths of the repository in backticks, and that the book's summary names
every chapter. A path in backticks may hold `*`, and may end in `::item` or `:line`.
"""

import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "docs" / "src"
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"`([^`\n]+)`")
FENCE = re.compile(r"^\s*(```|~~~)")
PATH = re.compile(r"^[\w.*-]+(/[\w.*-]+)*/?$")
# What exists only after something was built or run.
MADE = {"out", "target", "book"}


def documents():
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).exists()]


def prose(text):
    """The lines outside code blocks, with their numbers."""
    fenced = False
    for number, line in enumerate(text.splitlines(), 1):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors(file):
    """The anchors that headings have, as mdBook and code hosts make them."""
    found = set()
    for _, line in prose(file.read_text(encoding="utf-8")):
        if heading := re.match(r"#+\s+(.*)", line):
            text = re.sub(r"[`*]", "", heading[1]).strip().lower()
            found.add(re.sub(r"[^\w\- ]", "", text).replace(" ", "-"))
    return found


def check_link(file, target):
    if re.match(r"[a-z][a-z0-9+.-]*:", target):
        return None
    name, _, anchor = target.partition("#")
    to = (file.parent / unquote(name)).resolve() if name else file
    if not to.exists():
        return f"link to {target}, which does not exist"
    if not to.is_relative_to(ROOT):
        return f"link to {target}, which is outside the repository"
    if anchor and to.suffix == ".md" and anchor not in anchors(to):
        return f"link to {target}, but {to.name} has no such heading"
    return None


def is_path(text, tops):
    """Whether text in backticks means something of this repository."""
    if not PATH.match(text):
        return False
    top = text.split("/")[0]
    return top not in MADE and (("/" in text and top in tops) or (text in tops and "." in text.strip(".")))


def check_path(text):
    if "*" in text:
        return None if any(ROOT.glob(text.rstrip("/"))) else f"`{text}` matches nothing"
    return None if (ROOT / text).exists() else f"`{text}` does not exist"


def problems():
    # A first part that is misspelled is found by the parts that are known.
    tops = {entry.name for entry in ROOT.iterdir()} | {"crates", "docs", "tests", "scenarios", "fuzz"}
    for file in documents():
        here = file.relative_to(ROOT)
        for number, line in prose(file.read_text(encoding="utf-8")):
            found = [check_link(file, link or image) for link, image in LINK.findall(CODE.sub("", line))]
            for code in CODE.findall(line):
                text = re.sub(r"(::.*|:\d+)$", "", code)
                if is_path(text, tops):
                    found.append(check_path(text))
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
    print(f"documents: {len(found)} problems" if found else f"documents: nothing wrong in {len(documents())}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
