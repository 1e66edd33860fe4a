"""Draws tables of the book, from the text of its pages.

    python3 docs/figures/from_tables.py [--check]

Writes docs/src/figures/PAGE.svg for each PAGE below, or with --check compares the file with the tables of the page.
"""

# Elements of SVG are long lines.
# ruff: noqa: E501

import argparse
import math
import re
import sys
from pathlib import Path

from bars import arena, arena_messages, beside, interop, recorded_choice, reproduction, video, which_scheme
from svg import WIDTH, document, text

BOOK = Path(__file__).resolve().parent.parent / "src"
LEFT, RIGHT = 110, WIDTH - 24
POINT = re.compile(
    r"^(?P<name>\S+) +\d+ +[\d.]+ ± [\d.]+ +[\d.]+ ± [\d.]+ +(?P<difference>[+-][\d.]+) % .*?(?P<verdict>agrees|within 8 %|not judged|off)",
    re.MULTILINE,
)
RATIO = re.compile(
    r"^(?P<name>[\w-]+) +(?P<mean>[\d.]+) ± (?P<half>[\d.]+) of (?P<low>[\d.]+) to (?P<high>[\d.]+), Jain", re.MULTILINE
)
CLASSES = {"agrees": "dot", "within 8 %": "odd", "off": "odd", "not judged": "hollow"}


def crossval(page):
    """Draws the difference of each point from ns-2, in the order of the table."""
    points = [found.groupdict() for found in POINT.finditer(page)]
    top, bottom, most = 64, 304, 9
    height = bottom + 40

    def y(percent):
        return (top + bottom) / 2 - percent / most * (bottom - top) / 2

    yield height
    yield f'<rect class="expected" x="{LEFT - 50}" y="{y(3):.1f}" width="{RIGHT - LEFT + 50}" height="{y(-3) - y(3):.1f}"/>'
    for percent in (-8, -3, 0, 3, 8):
        yield f'<path class="grid" d="M{LEFT - 50},{y(percent):.1f}H{RIGHT}"/>'
        yield text(LEFT - 56, y(percent) + 4, f"{percent:+d} %" if percent else "0", anchor="end")
    for i, point in enumerate(points):
        x = LEFT - 40 + (RIGHT - LEFT + 30) * i / (len(points) - 1)
        name = f"{point['name']}: {point['difference']} %, {point['verdict']}"
        yield f'<circle class="{CLASSES[point["verdict"]]}" cx="{x:.1f}" cy="{y(float(point["difference"])):.1f}" r="4"><title>{name}</title></circle>'
    yield text(
        LEFT - 50, 28, f"Goodput of {len(points)} settings: difference from ns-2", "text", more=' font-weight="600"'
    )
    for x, kind, words in (
        (LEFT - 46, "dot", "agrees"),
        (LEFT + 44, "odd", "within 8 %"),
        (LEFT + 154, "hollow", "not judged: ns-2 hung in some runs"),
    ):
        yield f'<circle class="{kind}" cx="{x}" cy="{top - 16}" r="4"/>' + text(x + 10, top - 12, words)
    yield text(RIGHT, bottom + 24, "settings in the order of the table", anchor="end")


def fairness(page):
    """Draws the measured and the expected share of each scheme on a logarithmic axis."""
    rows = [found.groupdict() for found in RATIO.finditer(page)]
    top, step, low, high = 74, 22, 0.4, 10
    bottom = top + step * len(rows)
    height = bottom + 48

    def x(ratio):
        return LEFT + (RIGHT - LEFT) * math.log(ratio / low) / math.log(high / low)

    yield height
    yield text(
        24,
        28,
        "Goodput of an association with two paths, over that of a flow with one, on a shared link",
        "text",
        more=' font-weight="600"',
    )
    yield f'<rect class="expected" x="24" y="{top - 32}" width="24" height="12"/>' + text(
        54, top - 22, "expected of the scheme"
    )
    for ratio in (0.5, 1, 2, 4, 8):
        yield f'<path class="grid" d="M{x(ratio):.1f},{top - 8}V{bottom}"/>' + text(
            x(ratio), bottom + 18, f"{ratio:g}", anchor="middle"
        )
    for i, row in enumerate(rows):
        y = top + step * i + step / 2
        mean, half, least, most = (float(row[key]) for key in ("mean", "half", "low", "high"))
        kind = "dot" if least <= mean <= most else "odd"
        yield f'<rect class="expected" x="{x(least):.1f}" y="{y - 7:.1f}" width="{x(most) - x(least):.1f}" height="14"/>'
        yield f'<path class="{kind}" d="M{x(mean - half):.1f},{y:.1f}H{x(mean + half):.1f}" stroke-width="2"/>'
        yield f'<circle class="{kind}" cx="{x(mean):.1f}" cy="{y:.1f}" r="4"><title>{row["name"]}: {mean} ± {half}</title></circle>'
        yield text(LEFT - 10, y + 4, row["name"], "text", "end")
    yield text(RIGHT, bottom + 38, "ratio, logarithmic; 1 is an equal share", anchor="end")


# Sources other than a page of the same name: output of a program that is too long for a page, and a page with two figures.
STORED = {"crossval": BOOK.parent / "results" / "ns2.txt", "arena-messages": BOOK / "arena.md"}
FIGURES = {
    "crossval": (crossval, "Differences of mean goodput from ns-2, in per cent, for each setting of the table"),
    "fairness": (fairness, "Ratio of goodputs on a shared link for each scheme, with the range that is expected of it"),
    "reproduction": (reproduction, "Verdicts on the claims of the papers, by rank and by paper"),
    "which-scheme": (which_scheme, "Goodput of each scheme as a part of the best one's, on average and at worst"),
    "recorded-choice": (
        recorded_choice,
        "Goodput of each scheme over that of the better of two recorded networks alone",
    ),
    "beside": (beside, "Times of TCP, MPTCP and anabranch send over two links, with and without an outage"),
    "arena": (arena, "Goodput of each stack over that of TCP over the better of two recorded networks"),
    "arena-messages": (arena_messages, "Delay of messages with each stack over two recorded networks"),
    "interop": (interop, "Rates between usrsctp and this endpoint"),
    "video": (video, "Frames that are lost, late or undecodable, by loss and scheme"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the stored figures")
    options = parser.parse_args()
    old = []
    for name, (draw, title) in FIGURES.items():
        source = STORED.get(name, BOOK / f"{name}.md")
        height, *body = draw(source.read_text(encoding="utf-8"))
        drawn, file = document(height, title, body), BOOK / "figures" / f"{name}.svg"
        if not options.check:
            file.write_text(drawn, encoding="utf-8")
        elif not file.exists() or file.read_text(encoding="utf-8") != drawn:
            old.append(file.name)
    for name in old:
        print(f"{name} differs from its table: run docs/figures/from_tables.py")
    return 1 if old else 0


if __name__ == "__main__":
    sys.exit(main())
