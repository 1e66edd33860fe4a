"""Checks that code in the documents is the code of the file that it is taken from. Prints differences and exits with 1.

    python3 docs/check_excerpts.py            # checks
    python3 docs/check_excerpts.py --write    # copies the files' code into the documents

A comment above a block names the file and an anchor in it:

    <!-- from examples/own-scheme/src/lib.rs:policy -->

The block then equals the lines between `ANCHOR: policy` and `ANCHOR_END: policy` in comments of that file. In the
example of a doc comment (`//!` or `///`) its marks and the lines that rustdoc hides (`# `) are left out. mdBook's
`{{#include}}` would do the same in the built book, but a repository page shows the directive in place of the code, so
it is an error.
"""

import argparse
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/src/**/*.md")
MARK = re.compile(r"^<!-- from (\S+):([\w-]+) -->$")
FENCE = re.compile(r"^(```+)\S*$")
DIRECTIVE = re.compile(r"\{\{#\w+")
DOC_COMMENT = re.compile(r"^\s*//[/!] ?")


class ExcerptError(Exception):
    """An excerpt cannot be made or found; the text says why."""


def pages():
    return sorted(page for pattern in PAGES for page in ROOT.glob(pattern))


def excerpt(name, anchor):
    """Returns the lines of an anchor."""
    try:
        lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ExcerptError(f"{name}: {error.strerror}") from error
    begin = [at for at, line in enumerate(lines) if re.search(rf"ANCHOR: {re.escape(anchor)}$", line)]
    end = [at for at, line in enumerate(lines) if re.search(rf"ANCHOR_END: {re.escape(anchor)}$", line)]
    if len(begin) != 1 or len(end) != 1 or begin[0] > end[0]:
        raise ExcerptError(f"{name}: `ANCHOR: {anchor}` and `ANCHOR_END: {anchor}` do not enclose one part of it")
    return visible(lines[begin[0] + 1 : end[0]])


def visible(lines):
    """Returns the lines as a reader of the documentation sees them."""
    if lines and all(DOC_COMMENT.match(line) for line in lines):
        lines = [DOC_COMMENT.sub("", line) for line in lines]
        lines = [line for line in lines if line != "#" and not line.startswith("# ")]
    lines = [line for line in lines if not re.search(r"ANCHOR(_END)?: [\w-]+$", line)]
    return textwrap.dedent("\n".join(lines)).strip("\n").splitlines()


def renewed(text, complain):
    """Returns a page's text with the current code in every marked block, and reports the problems of the page."""
    lines, out, at = text.splitlines(), [], 0
    while at < len(lines):
        line, number = lines[at], at + 1
        out.append(line)
        at += 1
        if DIRECTIVE.search(line):
            complain(number, "a directive of mdBook: repository pages show it as it is; use a `from` mark and --write")
        mark = MARK.match(line)
        if not mark:
            continue
        fence = FENCE.match(lines[at]) if at < len(lines) else None
        end = next((i for i in range(at + 1, len(lines)) if fence and lines[i] == fence[1]), None)
        if end is None:
            complain(number, "a `from` mark that is not above a block of code")
            continue
        try:
            code = excerpt(mark[1], mark[2])
        except ExcerptError as error:
            complain(number, str(error))
            code = lines[at + 1 : end]
        if code != lines[at + 1 : end]:
            complain(number, f"the block differs from {mark[1]}:{mark[2]}", can_write=True)
        out += [lines[at], *code, lines[end]]
        at = end + 1
    return "\n".join(out) + "\n"


def check(page, write):
    """Returns the complaints about a page that remain."""
    text, complaints = page.read_text(encoding="utf-8"), []

    def complain(line, problem, *, can_write=False):
        if not (write and can_write):
            complaints.append(f"{page.relative_to(ROOT)}:{line}: {problem}")

    new = renewed(text, complain)
    if write and new != text:
        page.write_text(new, encoding="utf-8")
    return complaints


def main():
    parser = argparse.ArgumentParser(description="Check code in the documents against the files it is taken from.")
    parser.add_argument("--write", action="store_true", help="copy the files' code into the documents")
    arguments = parser.parse_args()
    complaints = [complaint for page in pages() for complaint in check(page, arguments.write)]
    print("\n".join(complaints) or "documents: all code equals its files")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
