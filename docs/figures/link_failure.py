"""Draws a file that is carried by two links while one of them fails, from a simulated run.

    python3 docs/figures/link_failure.py --anabranch target/release/anabranch [--check]

Runs docs/figures/link-failure.toml and writes docs/src/figures/link-failure.svg, or with --check compares that file
with the result of the run. The run is deterministic and no library draws, so the same code gives the same bytes.
Colours follow the reader's choice of light or dark, and the figure has a background of its own.
"""

# Elements of SVG are long lines.
# ruff: noqa: E501

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from svg import document

HERE = Path(__file__).resolve().parent
SCENARIO = HERE / "link-failure.toml"
FIGURE = HERE.parent / "src" / "figures" / "link-failure.svg"

FILE_BYTES = 60_000_000
DOWN_S, UP_S = 8, 14
BIN_S = 0.5
END_S = 36
PEAK_MBIT = 32
LINKS = ("cellular", "fibre")

HEIGHT = 430
LEFT, RIGHT = 62, 800
RATES = (64, 224)
FILE = (282, 384)


def run(anabranch, folder):
    """Makes the run once, and returns for each scheme its packets that arrived and the time of its last byte."""
    command = [anabranch, "run", str(SCENARIO), "--trace", folder, "--json", "--quiet"]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    ends = {each["scheme"]: each["flows"][0]["transfer_s"] for each in map(json.loads, lines)}
    arrivals = {}
    for scheme in ends:
        with (Path(folder) / f"{scheme}-seed1" / "packets.csv").open(encoding="utf-8") as file:
            arrivals[scheme] = [
                (float(row["time_s"]), row["path"], int(row["chunk_bytes"]))
                for row in csv.DictReader(file)
                if row["event"] == "received" and row["direction"] == "forward"
            ]
    return arrivals, ends


def x(seconds):
    return LEFT + (RIGHT - LEFT) * seconds / END_S


def y(panel, share):
    top, bottom = panel
    return bottom - (bottom - top) * share


def steps(points):
    """Returns the SVG path of a line through `points`."""
    return "M" + "L".join(f"{px:.1f},{py:.1f}" for px, py in points)


def rates(arrivals):
    """Draws the rate of each link as stacked areas."""
    bins = int(END_S / BIN_S)
    below = [0.0] * bins
    for link in LINKS:
        above = below.copy()
        for time, path, length in arrivals:
            if path == link and time < END_S:
                above[int(time / BIN_S)] += length * 8 / BIN_S / 1e6
        upper, lower = [], []
        for i in range(bins):
            for at in (i * BIN_S, (i + 1) * BIN_S):
                upper.append((x(at), y(RATES, above[i] / PEAK_MBIT)))
                lower.append((x(at), y(RATES, below[i] / PEAK_MBIT)))
        yield f'<path class="{link}" d="{steps(upper + lower[::-1])}Z"/>'
        below = above


def delivered(arrivals, end, style):
    """Draws the line of the arrived bytes of the file, and its last point."""
    total = sum(length for _, _, length in arrivals)
    sums, points = 0, []
    last = -1.0
    for time, _, length in arrivals:
        sums += length
        if time - last >= BIN_S / 2:
            points.append((x(time), y(FILE, sums / total)))
            last = time
    points.append((x(end), y(FILE, 1)))
    yield f'<path class="line {style}" d="{steps(points)}"/>'


def frame():
    """Draws the parts that do not depend on the run: the outage and the grid."""
    for top, bottom in (RATES, FILE):
        yield f'<rect class="down" x="{x(DOWN_S):.1f}" y="{top}" width="{x(UP_S) - x(DOWN_S):.1f}" height="{bottom - top}"/>'
    for mbit in (10, 20, 30):
        at = y(RATES, mbit / PEAK_MBIT)
        yield f'<path class="grid" d="M{LEFT},{at:.1f}H{RIGHT}"/><text class="quiet" x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{mbit}</text>'
    for share in (0.5, 1):
        at = y(FILE, share)
        yield f'<path class="grid" d="M{LEFT},{at:.1f}H{RIGHT}"/><text class="quiet" x="{LEFT - 8}" y="{at + 4:.1f}" text-anchor="end">{share:.0%}</text>'


def labels(ends):
    """Words and axes on top of the data."""
    for _, bottom in (RATES, FILE):
        yield f'<path class="axis" d="M{LEFT},{bottom}H{RIGHT}"/>'
    for seconds in range(0, END_S + 1, 4):
        yield f'<text class="quiet" x="{x(seconds):.1f}" y="{FILE[1] + 18}" text-anchor="middle">{seconds}</text>'
    middle = (x(DOWN_S) + x(UP_S)) / 2
    legend = RATES[0] - 14
    yield f'<text class="text" x="{LEFT}" y="26" font-weight="600">A file of 60 MB over two links, one of which fails for six seconds</text>'
    yield f'<text class="quiet" x="{LEFT}" y="{legend}">received over each link, Mbit/s</text>'
    for at, link in ((x(END_S) - 180, "fibre"), (x(END_S) - 95, "cellular")):
        yield f'<rect class="{link}" x="{at:.0f}" y="{legend - 11}" width="12" height="12"/><text class="text" x="{at + 18:.0f}" y="{legend}">{link}</text>'
    yield f'<text class="downtext" x="{middle:.1f}" y="{RATES[0] + 20}" text-anchor="middle">fibre is down</text>'
    yield f'<text class="quiet" x="{LEFT}" y="{FILE[0] - 14}">part of the file that has arrived</text>'
    both, backup = (x(ends[scheme]) for scheme in ("cmt-pf", "sctp"))
    yield f'<text class="text" x="{both - 14:.0f}" y="{FILE[0] - 14}" text-anchor="end">both links at once: {ends["cmt-pf"]:.1f} s</text>'
    yield f'<text class="quiet" x="{backup:.0f}" y="{FILE[0] - 14}" text-anchor="end">one link, one spare: {ends["sctp"]:.1f} s</text>'
    yield f'<text class="quiet" x="{RIGHT}" y="{FILE[1] + 36}" text-anchor="end">seconds; simulated, docs/figures/link-failure.toml, seed 1</text>'


def figure(arrivals, ends):
    body = [*frame(), *rates(arrivals["cmt-pf"])]
    body += delivered(arrivals["sctp"], ends["sctp"], "backup")
    body += delivered(arrivals["cmt-pf"], ends["cmt-pf"], "both")
    body += labels(ends)
    title = "Timeline: two links carry one file; while one link is down the other one continues, and both are used again afterwards."
    return document(HEIGHT, title, body)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--anabranch", default="anabranch", help="the command to run")
    parser.add_argument("--check", action="store_true", help="compare with the stored figure")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        drawn = figure(*run(options.anabranch, folder))
    if options.check:
        if drawn != FIGURE.read_text(encoding="utf-8"):
            print(f"{FIGURE.name} is not what the run gives: run docs/figures/link_failure.py", file=sys.stderr)
            return 1
        return 0
    FIGURE.parent.mkdir(exist_ok=True)
    FIGURE.write_text(drawn, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
