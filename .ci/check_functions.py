"""No function is longer than 80 lines, in Rust and in Python.

A function's lines are those from its name to its end. Lines that hold only a comment do not count, nor do docstrings
and the lines that cite a specification (`//=` and `//#`). Tests are left out.
"""

import ast
import re

import rust_source

LONGEST = 80
FUNCTION = re.compile(r"\bfn\s+(\w+)")


def rust_functions(text):
    """Name, line and length of every function that has a body."""
    code = rust_source.without_tests(rust_source.code_only(text))
    counted = [bool(line.strip()) for line in rust_source.without_comments(text).splitlines()]
    written = [bool(line.strip()) for line in text.splitlines()]
    for found in FUNCTION.finditer(code):
        opening = body(code, found.end())
        if opening is None:
            continue
        first, last = (rust_source.line_of(code, at) - 1 for at in (found.start(), rust_source.closing(code, opening)))
        # A line that something is written on, and nothing once comments are gone, is a comment.
        comments = sum(written[at] and not counted[at] for at in range(first, last + 1))
        yield found[1], first + 1, last + 1 - first - comments


def body(code, at):
    """Where the body of the function begins whose name ends at `at`, or None for one that is only declared."""
    while at < len(code) and code[at] not in ";{":
        at = rust_source.closing(code, at) + 1 if code[at] in "([" else at + 1
    return at if code[at : at + 1] == "{" else None


def python_functions(text):
    lines = text.splitlines()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            skipped = {at for at in range(node.lineno, node.end_lineno + 1) if lines[at - 1].lstrip().startswith("#")}
            for inner in ast.walk(node):
                if isinstance(inner, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and ast.get_docstring(inner):
                    skipped |= set(range(inner.body[0].lineno, inner.body[0].end_lineno + 1))
            yield node.name, node.lineno, node.end_lineno + 1 - node.lineno - len(skipped)


def long_functions(sources):
    """Takes the text of each source by its name."""
    for file, text in sources.items():
        functions = rust_functions if file.endswith(".rs") else python_functions
        for name, line, length in functions(text):
            if length > LONGEST:
                yield f"{file}:{line}: {name} has {length} lines without comments, more than {LONGEST}: divide it"
