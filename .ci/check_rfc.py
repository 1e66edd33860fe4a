"""Checks the citations of RFC 9260, and writes the book's page about them.

duvet is the authority on all this (`make rfc`), and takes minutes to build. This script reads the same files as duvet
and checks the rules that must hold after every change: each quote is in its section of the RFC, each MUST and SHOULD
has a citation, a test or an exception, and the numbers in the documents are those of the sources.

    .ci/check_rfc.py                      check
    .ci/check_rfc.py --page FILE          check, and write the book's page
    .ci/check_rfc.py --duvet REPORT.json  check, and compare every requirement with a report of duvet's
"""

import argparse
import json
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parent.parent
CONFIG = ".duvet/config.toml"
TEMPLATE = "docs/rfc9260.md.in"
LEVELS = ("MUST", "SHOULD", "MAY")
# Levels of requirements that need a citation, a test or an exception. A MAY needs none.
BINDING = ("MUST", "SHOULD")
# Key words that make a sentence a requirement, as in duvet, with their level. A word in quotes is no requirement.
KEY_WORDS = (
    (r"\b(?:MUST(?: NOT)?|SHALL(?: NOT)?|REQUIRED)\b\"?", "MUST"),
    (r"\b(?:SHOULD(?: NOT)?|(?:NOT )?RECOMMENDED)\b\"?", "SHOULD"),
    (r"\b(?:MAY|OPTIONAL)\b\"?", "MAY"),
)
KINDS = ("citation", "implication", "test", "exception")
# The files of exceptions, in the order of the page, with the heading of each.
EXCEPTIONS = (
    ("deviations", "Deviations"),
    ("not-implemented", "Not implemented"),
    ("not-for-an-endpoint", "Not addressed to an endpoint"),
)


@dataclass
class Requirement:
    """A sentence of the RFC with a key word in it."""

    section: str
    level: str
    quote: str
    covered_by: Counter = field(default_factory=Counter)
    complete: bool = False


@dataclass
class Annotation:
    """Annotation of a passage of the RFC in a source file or a file of exceptions."""

    where: str
    section: str
    kind: str
    quote: str
    reason: str = ""


@dataclass
class Section:
    """A section of the RFC: its heading, its lines, its requirements and their annotations."""

    title: str
    lines: list = field(default_factory=list)
    requirements: list = field(default_factory=list)
    annotations: list = field(default_factory=list)


def normal(text):
    """Returns the text in the form in which quotes are compared: without white space beside punctuation, and with
    single blanks elsewhere."""
    return re.sub(r"\s*([^\w\s]|_)\s*", r"\1", " ".join(text.split()))


def read_sections(text):
    """Returns the numbered sections in order, by their names in links."""
    sections, now = {}, None
    for line in text.splitlines():
        heading = re.match(r"(?:Appendix )?([A-Z]|\d+(?:\.\d+)*)\.  +(\S.*)$", line)
        if heading:
            name = f"{'section' if heading[1][0].isdigit() else 'appendix'}-{heading[1]}"
            now = sections[name] = Section(heading[2])
        elif line[:1].strip():
            now = None
        elif now and (line.strip() or now.lines):
            now.lines.append(line.strip())
    return sections


def stops(line):
    """Returns the positions at which sentences of a line end: behind each full stop before white space or the end of
    the line."""
    return [found.end() for found in re.finditer(r"\.(?=[ \t]|$)", line)]


def sentence(lines, row, start, end):
    """Returns the lines of the sentence around a key word. An empty line also ends a sentence."""
    first, begin = row, max((at for at in stops(lines[row]) if at <= start), default=None)
    while begin is None and first > 0 and lines[first - 1]:
        first -= 1
        begin = max(stops(lines[first]), default=None)
    last, finish = row, min((at for at in stops(lines[row]) if at >= end), default=None)
    while finish is None and last + 1 < len(lines) and lines[last + 1]:
        last += 1
        finish = min(stops(lines[last]), default=None)
    parts = lines[first : last + 1]
    parts[-1] = parts[-1][:finish]
    parts[0] = parts[0][begin or 0 :]
    return [part.strip() for part in parts if part.strip()]


def find_requirements(name, section):
    """Returns the requirements of a section in order.

    A requirement with several key words has the strictest of their levels.
    """
    found = {}
    for row, line in enumerate(section.lines):
        for pattern, level in KEY_WORDS:
            for word in re.finditer(pattern, line):
                if word[0].endswith('"'):
                    continue
                quote = "\n".join(sentence(section.lines, row, word.start(), word.end()))
                known = found.setdefault(quote, Requirement(name, level, normal(quote)))
                known.level = min(known.level, level, key=LEVELS.index)
    section.requirements = list(found.values())


def comments(file):
    """Returns the annotations in a source file:

    `//=` for target and type, `//#` for the quote, on consecutive lines.
    """
    meta, quote, began, before = [], [], 0, -1
    for number, line in enumerate([*file.read_text(encoding="utf-8").splitlines(), ""], 1):
        mark = re.match(r"\s*//([=#])\s*(.*?)\s*$", line)
        ends = meta and (not mark or number > before + 1 or (mark[1] == "=" and quote))
        if ends:
            yield began, meta, quote
            meta, quote = [], []
        if mark:
            before = number
            began = number if not meta else began
            (meta if mark[1] == "=" else quote).append(mark[2])


def read_annotations(config, specification):
    """Returns all annotations of the sources and the files of exceptions.

    Errors in an annotation are reported as its problem.
    """
    for source in config["source"]:
        for file in sorted(ROOT.glob(source["pattern"])):
            where = file.relative_to(ROOT)
            for line, meta, quote in comments(file):
                values = dict(item.split("=", 1) for item in meta if "=" in item)
                target = next((item for item in meta if "=" not in item), "")
                path, _, section = target.partition("#")
                kind = values.get("type", "citation")
                problem = "" if path == specification and kind in KINDS else f"names {target!r} as {kind}"
                yield Annotation(f"{where}:{line}", section, kind, normal(" ".join(quote))), problem
    for file in sorted((ROOT / ".duvet/exceptions").glob("*.toml")):
        where = str(file.relative_to(ROOT))
        for entry in tomllib.loads(file.read_text(encoding="utf-8"))["exception"]:
            path, _, section = entry["target"].partition("#")
            reason = " ".join(entry["reason"].split())
            problem = "" if path == specification and reason else "is of another document, or has no reason"
            yield Annotation(where, section, "exception", normal(entry["quote"]), reason), problem


def cover(section):
    """Assigns annotations to the requirements of a section that they cover, and yields annotations whose quote is not
    in the section."""
    text = normal(" ".join(section.lines))
    passages = []
    for annotation in section.annotations:
        start = text.find(annotation.quote)
        if start < 0 or not annotation.quote:
            yield annotation
        else:
            passages.append((start, start + len(annotation.quote), annotation.kind))
    for requirement in section.requirements:
        start = text.find(requirement.quote)
        end, open_at = start + len(requirement.quote), start
        for begin, finish, kind in sorted(passages):
            if begin < end and finish > start:
                requirement.covered_by[kind] += 1
                open_at = max(open_at, finish) if begin <= open_at else open_at
        requirement.complete = open_at >= end


def survey():
    """Returns the sections with their requirements and annotations, and the problems."""
    config = tomllib.loads((ROOT / CONFIG).read_text(encoding="utf-8"))
    specification = config["specification"][0]["source"]
    sections = read_sections((ROOT / specification).read_text(encoding="utf-8"))
    problems = []
    for annotation, problem in read_annotations(config, specification):
        if problem:
            problems.append(f"{annotation.where}: {problem}")
        elif annotation.section not in sections:
            problems.append(f"{annotation.where}: {specification} has no {annotation.section!r}")
        else:
            sections[annotation.section].annotations.append(annotation)
    for name, section in sections.items():
        find_requirements(name, section)
        for lost in cover(section):
            problems.append(f"{lost.where}: {name} does not say {lost.quote!r}: quote a sentence as it stands there")
        for requirement in section.requirements:
            if requirement.level in BINDING and not requirement.complete:
                problems.append(f"{name}: no citation, test or exception quotes all of {requirement.quote!r}")
    return sections, problems


def state(requirement):
    """Returns the displayed state of a requirement.

    An exception takes precedence, because it names a part that is not met.
    """
    found = requirement.covered_by
    if not requirement.complete:
        return "missing"
    if found["exception"]:
        return "exception"
    return "tested" if found["test"] else "cited"


STATES = ("tested", "cited", "exception", "missing")


def totals(requirements):
    return Counter((requirement.level, state(requirement)) for requirement in requirements)


def table_of_totals(sections):
    counts = totals(requirement for section in sections.values() for requirement in section.requirements)
    rows = ["| level | requirements | cited and tested | cited | exception | missing |", "| --- " + "| ---: " * 5 + "|"]
    for level in BINDING:
        row = [counts[level, kind] for kind in STATES]
        rows.append(f"| {level} | {sum(row)} | " + " | ".join(map(str, row)) + " |")
    both = [sum(counts[level, kind] for level in BINDING) for kind in STATES]
    rows.append(f"| both | {sum(both)} | " + " | ".join(map(str, both)) + " |")
    return "\n".join(rows)


def table_of_sections(sections):
    heads = [f"{level}: {kind}" for level in BINDING for kind in STATES]
    rows = ["| section | " + " | ".join(heads) + " |", "| --- " + "| ---: " * len(heads) + "|"]
    for name, section in sections.items():
        counts = totals(section.requirements)
        numbers = [counts[level, kind] for level in BINDING for kind in STATES]
        if any(numbers):
            shown = " | ".join(str(number or "") for number in numbers)
            rows.append(f"| {name.partition('-')[2]} {section.title} | {shown} |")
    return "\n".join(rows)


def cell(text):
    """Returns text that is escaped for a cell of a table."""
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*").strip()


def readable(section, quote):
    """Returns a quote with the white space of the RFC."""
    words = r"\s*".join(map(re.escape, re.findall(r"\w+|[^\w\s]", quote)))
    found = re.search(words, " ".join(section.lines))
    return " ".join(found[0].split()) if found else quote


def table_of_exceptions(sections, kind):
    rows = ["| section | requirement | why |", "| --- | --- | --- |"]
    for name, section in sections.items():
        for annotation in section.annotations:
            if annotation.kind == "exception" and annotation.where.endswith(f"/{kind}.toml"):
                quote = readable(section, annotation.quote)
                rows.append(f"| {name.partition('-')[2]} | {cell(quote)} | {annotation.reason} |")
    return "\n".join(rows)


def page(sections):
    parts = {"totals": table_of_totals(sections), "sections": table_of_sections(sections)}
    tables = [f"### {heading}\n\n{table_of_exceptions(sections, kind)}" for kind, heading in EXCEPTIONS]
    parts["exceptions"] = "\n\n".join(tables)
    template = (ROOT / TEMPLATE).read_text(encoding="utf-8")
    return re.sub(r"\{\{(\w+)\}\}", lambda found: parts[found[1]], template)


def compare(sections, report):
    """Yields the requirements on which duvet's report differs."""
    theirs = defaultdict(list)
    annotations = report["annotations"]
    for number, status in report["statuses"].items():
        spec = annotations[int(number)]
        kinds = tuple(kind for kind in KINDS if status.get(kind))
        key = (spec["target_section"], normal(spec["comment"]))
        theirs[key].append((spec["level"], kinds, not status.get("incomplete")))
    ours = defaultdict(list)
    for name, section in sections.items():
        for found in section.requirements:
            kinds = tuple(kind for kind in KINDS if found.covered_by[kind])
            ours[name, found.quote].append((found.level, kinds, found.complete))
    for key in sorted(theirs.keys() | ours.keys()):
        if sorted(theirs[key]) != sorted(ours[key]):
            yield f"{key[0]}: {key[1]!r}: duvet finds {theirs[key]}, this script {ours[key]}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--page", type=Path, metavar="FILE", help="write the book's page to this file")
    parser.add_argument("--duvet", type=Path, metavar="REPORT.json", help="compare with a report of duvet's")
    arguments = parser.parse_args()
    sections, problems = survey()
    if arguments.duvet:
        problems += compare(sections, json.loads(arguments.duvet.read_text(encoding="utf-8")))
    if arguments.page and not problems:
        arguments.page.write_text(page(sections), encoding="utf-8")
    for problem in problems:
        print(problem)
    count = sum(len(section.requirements) for section in sections.values())
    print(f"rfc: {len(problems)} problems" if problems else f"rfc: {count} requirements, nothing wrong")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
