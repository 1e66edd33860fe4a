"""Rust source text without the parts that checks must ignore: comments, the contents of literals, tests.

Every function keeps line breaks, so that a position in its result has the line number of the source.
"""

import re
from pathlib import PurePosixPath

# Literals come first where both could begin: a string may hold `//`, and a comment may hold a quotation mark.
TOKENS = re.compile(
    r"""(?P<comment>//[^\n]*|/\*.*?\*/)
    |(?P<raw>\bb?r(?P<hashes>\#*)".*?"(?P=hashes))
    |(?P<string>"(?:\\.|[^"\\])*")
    |(?P<char>'(?:\\(?:x..|u\{[^}]*\}|.)|[^\\'\n])')""",
    re.DOTALL | re.VERBOSE,
)
TEST_ITEM = re.compile(r"#\[cfg\((?:test|all\(test\b[^]]*\))\)\](?:\s*#\[[^]]*\])*")
TEST_MODULE = re.compile(TEST_ITEM.pattern + r"\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;")
PAIRS = {"{": "}", "(": ")", "[": "]"}


def without_comments(text):
    """Replaces comments by spaces."""
    return TOKENS.sub(lambda found: blank(found.group()) if found["comment"] else found.group(), text)


def code_only(text):
    """Replaces comments and the contents of literals by spaces. Quotation marks stay."""

    def replaced(found):
        token = found.group()
        return blank(token) if found["comment"] else token[0] + blank(token[1:-1]) + token[-1]

    return TOKENS.sub(replaced, text)


def without_tests(code):
    """Replaces items under `#[cfg(test)]` by spaces. The argument is a result of `code_only`."""
    while found := TEST_ITEM.search(code):
        end = item_end(code, found.end())
        code = code[: found.start()] + blank(code[found.start() : end]) + code[end:]
    return code


def without_test_files(sources):
    """Removes the files of modules that are declared under `#[cfg(test)]` from texts by file name."""
    declared = set()
    for file, text in sources.items():
        if file.endswith(".rs"):
            place = PurePosixPath(file)
            folder = place.parent if place.stem in {"lib", "main", "mod"} else place.with_suffix("")
            declared |= {str(folder / name) for name in TEST_MODULE.findall(code_only(text))}

    def is_test(file):
        place = PurePosixPath(file)
        return any(str(part) in declared for part in (place.with_suffix(""), *place.parents))

    return {file: text for file, text in sources.items() if not (file.endswith(".rs") and is_test(file))}


def item_end(code, start):
    """Returns the end of the item that begins at `start`: its semicolon or the brace that closes its body."""
    at = start
    while at < len(code):
        if code[at] == ";":
            return at + 1
        if code[at] in PAIRS:
            at = closing(code, at)
            if code[at] == "}" and code[at + 1 : at + 2] != ";":
                return at + 1
        at += 1
    return at


def closing(code, opening):
    """Returns the position of the bracket that closes the one at `opening`."""
    first, depth = code[opening], 0
    for found in re.compile(f"[{re.escape(first + PAIRS[first])}]").finditer(code, opening):
        depth += 1 if found.group() == first else -1
        if depth == 0:
            return found.start()
    return len(code) - 1


def line_of(text, position):
    return text.count("\n", 0, position) + 1


def blank(text):
    return re.sub(r"[^\n]", " ", text)
