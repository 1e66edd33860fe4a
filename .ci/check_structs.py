"""No struct of the core has more than 20 fields, except configuration and counters."""

import re

import rust_source

MOST_FIELDS = 20
# Configuration and counters, which are lists of independent values and hold no state of their own.
MANY_FIELDS = {
    "AssociationConfig": "configuration of an association",
    "PathFacts": "what policies read of a path: values that change independently, copied for each decision",
    "Profile": "configuration: the rules that a profile chooses",
    "Statistics": "counters of an association",
}
STRUCT = re.compile(r"\bstruct\s+(\w+)[^;{(]*\{")
FIELD = re.compile(r"(?:pub(?:\([^)]*\))?\s+)?(?:r#)?\w+\s*:(?!:)")


def structs(text):
    """Name, line and number of fields of every struct with named fields."""
    code = rust_source.without_tests(rust_source.code_only(text))
    for found in STRUCT.finditer(code):
        opening = found.end() - 1
        fields = list(parts(code[opening + 1 : rust_source.closing(code, opening)]))
        yield found[1], rust_source.line_of(code, found.start()), sum(bool(FIELD.search(field)) for field in fields)


def parts(text):
    """Divides at the commas outside all brackets."""
    depth, start = 0, 0
    text = text.replace("->", "  ")
    for at, character in enumerate(text):
        if character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
        elif character == "," and depth == 0:
            yield text[start:at]
            start = at + 1
    yield text[start:]


def large_structs(sources):
    """Takes the text of each source by its name."""
    for file, text in sources.items():
        for name, line, fields in structs(text):
            if fields > MOST_FIELDS and name not in MANY_FIELDS:
                yield f"{file}:{line}: {name} has {fields} fields, more than {MOST_FIELDS}: divide it"
