"""Bars and ranges of tables of the book: verdicts on the papers, schemes, and times and rates that were measured."""

# Elements of SVG are long lines.
# ruff: noqa: E501

import itertools
import json
import lzma
import math
import re
import runpy
from pathlib import Path

from svg import WIDTH, text

RIGHT = WIDTH - 24
ROOT = Path(__file__).resolve().parents[2]
GRADES = ROOT / "python/anabranch/experiments/verdicts/grades.py"
RESULTS = ROOT / "docs/results"
BOLD = ' font-weight="600"'


def verdicts():
    """Returns the module of grades, loaded from its file, because it needs no other module of the package."""
    return {verdict.value: verdict for verdict in runpy.run_path(str(GRADES))["Verdict"]}


def rows_below(page, begin):
    """Returns the rows of the first table whose header begins with these names, each as cells by the names of the
    columns."""
    after = page[page.index(f"\n{begin}") + 1 :].splitlines()
    lines = itertools.takewhile(lambda line: line.startswith("|"), after)
    names, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [dict(zip(names, row, strict=True)) for row in rows]


def stored_rows(study, part):
    """Returns the rows of the first table of stored results, each as cells by the names of the columns."""
    content = json.loads(lzma.decompress((RESULTS / f"{study}.json.xz").read_bytes()))
    table = next(block for block in content["parts"][part] if "header" in block)
    return [dict(zip(table["header"], row, strict=True)) for row in table["rows"]]


def plain(cell):
    """Returns the text of a cell without links and code."""
    return re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", cell).replace("`", "")


def reproduction(page):
    """Verdicts on the claims of each rank and each paper, as parts of one bar each."""
    ranks, papers = rows_below(page, "| rank |"), rows_below(page, "| paper |")
    known = verdicts()
    present = [name for name in ranks[0] if name in known]
    bars = [("by rank", row["rank"], row) for row in ranks] + [("by paper", plain(row["paper"]), row) for row in papers]
    left, step, gap = 250, 28, 26
    top = 80 + 22 * ((len(present) + 2) // 3 - 1)
    yield top + step * len(bars) + 2 * gap + 20
    yield _grade_styles([known[name] for name in present])
    yield text(24, 28, "Verdicts on the claims of the papers", "text", more=BOLD)
    for i, name in enumerate(present):
        x, y = 24 + 260 * (i % 3), 44 + 22 * (i // 3)
        yield f'<rect class="{known[name].key}" x="{x}" y="{y}" width="20" height="14"/>'
        yield text(x + 10, y + 11, known[name].grade.symbol, "inside", "middle") + text(x + 28, y + 11, name, "text")
    y, group = top, ""
    for title, name, row in bars:
        if title != group:
            group, y = title, y + gap
            yield text(24, y - 8, title)
        yield text(left - 10, y + 15, f"{name}: {row['all']}", "text", "end")
        yield from _shares(row, present, known, left, y)
        y += step


def video(page):
    """Draws the frames that are not shown, by their fate, as parts of one bar for each loss rate and scheme."""
    rows = rows_below(page, "| loss | scheme | good |")
    kinds = (("lost", "hollow"), ("late", "odd"), ("undecodable", "dot"))
    left, step, gap, top = 150, 24, 18, 76
    most = max(sum(float(row[name]) for name, _ in kinds) for row in rows)
    losses = list(dict.fromkeys(row["loss"] for row in rows))
    yield top + step * len(rows) + gap * (len(losses) - 1) + 16
    yield text(24, 28, "Frames that are not shown, of 2000", "text", more=BOLD)
    for i, (name, kind) in enumerate(kinds):
        yield f'<rect class="{kind}" x="{24 + 130 * i}" y="44" width="20" height="14"/>'
        yield text(24 + 130 * i + 28, 55, name, "text")
    for i, row in enumerate(rows):
        x, y = float(left), top + step * i + gap * losses.index(row["loss"])
        yield text(24, y + 14, f"{row['loss']} loss") + text(left - 10, y + 14, plain(row["scheme"]), "text", "end")
        for name, kind in kinds:
            width = (RIGHT - left - 60) * float(row[name]) / most
            yield f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{width:.1f}" height="18"><title>{name}: {row[name]}</title></rect>'
            x += width
        yield text(x + 8, y + 14, f"{sum(float(row[name]) for name, _ in kinds):.0f}")


def _shares(row, present, known, left, y):
    """Returns the parts of one bar. Each part has its symbol and number as its title, and wide parts also show them."""
    total, x = int(row["all"]), float(left)
    for name in present:
        count = int(row[name] or 0)
        if not count:
            continue
        width = (RIGHT - left) * count / total
        words = f"{known[name].grade.symbol} {count}"
        yield f'<rect class="{known[name].key}" x="{x:.1f}" y="{y}" width="{width - 1:.1f}" height="20"><title>{name}: {count} of {total}</title></rect>'
        if width > 9 * len(words):
            yield text(x + width / 2, y + 15, words, "inside", "middle")
        x += width


def _grade_styles(listed):
    def rules(page):
        return " ".join(f".{verdict.key} {{ fill: {getattr(verdict.grade, page)}; }}" for verdict in listed)

    light, dark = (
        f"{rules(page)} .inside {{ fill: {ink}; }}" for page, ink in (("light", "#ffffff"), ("dark", "#0d1117"))
    )
    return f"<style>{light} @media (prefers-color-scheme: dark) {{ {dark} }}</style>"


def which_scheme(_page):
    """Draws the part of each scheme in the best scheme's goodput: the mean over the cells, and the least of them."""
    rows = stored_rows("choice", "schemes")
    left, step, top = 250, 19, 74
    bottom = top + step * len(rows)

    def x(percent):
        return left + (RIGHT - left) * percent / 100

    yield bottom + 48
    yield text(24, 28, "Goodput as a part of that of the best scheme of each cell", "text", more=BOLD)
    for at, kind, words in ((30, "dot", "mean over all cells"), (190, "hollow", "in the cell where it is worst")):
        yield f'<circle class="{kind}" cx="{at}" cy="48" r="4"/>' + text(at + 10, 52, words)
    for percent in (0, 25, 50, 75, 100):
        yield f'<path class="grid" d="M{x(percent):.1f},{top - 8}V{bottom}"/>' + text(
            x(percent), bottom + 18, f"{percent} %", anchor="middle"
        )
    for i, row in enumerate(rows):
        y = top + step * i + step / 2
        mean, worst = (float(row[key].rstrip(" %")) for key in ("of the best", "at worst"))
        name = plain(row["scheme"])
        yield text(left - 10, y + 4, name, "text", "end")
        yield f'<path class="axis" d="M{x(worst) + 4:.1f},{y:.1f}H{x(mean) - 4:.1f}"/>'
        yield f'<circle class="hollow" cx="{x(worst):.1f}" cy="{y:.1f}" r="4"/>'
        yield f'<circle class="dot" cx="{x(mean):.1f}" cy="{y:.1f}" r="4"><title>{name}: {mean:g} %, {worst:g} % at worst</title></circle>'
    yield text(RIGHT, bottom + 38, "in the order of the table", anchor="end")


RATIO_TICKS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 4, 8)


def recorded_choice(_page):
    """Draws the goodput of each scheme over that of the better link alone: median, and the middle four fifths."""
    return _over_better_link(stored_rows("recorded", "schemes"), "scheme", RATIO_TICKS, "the better link alone")


def arena(_page):
    """Draws the goodput of each stack over that of TCP over the better link: median, and the middle four fifths."""
    rows = sorted(stored_rows("arena", "recorded"), key=lambda row: -float(row["median"].split()[0]))
    return _over_better_link(rows, "stack", (0.25, 0.5, 0.75, 1, 1.5, 2, 3, 4), "TCP over the better link")


def _over_better_link(rows, key, possible_ticks, one):
    """Draws ratios of goodputs on a logarithmic axis, on which `one` is the name of the ratio 1."""
    left, right, step, top = 230, WIDTH - 130, 22, 92
    low = max(tick for tick in possible_ticks if tick <= min(float(row["10 %"]) for row in rows))
    high = min(tick for tick in possible_ticks if tick >= max(float(row["90 %"]) for row in rows))
    bottom = top + step * len(rows)

    def x(ratio):
        return left + (right - left) * math.log(ratio / low) / math.log(high / low)

    yield bottom + 48
    yield text(24, 28, "Goodput over two recorded networks, over that of the better one alone", "text", more=BOLD)
    yield '<circle class="dot" cx="30" cy="48" r="4"/>' + text(40, 52, "median of the sections")
    yield '<path class="axis" d="M206,48H230"/>' + text(238, 52, "eight of ten sections")
    yield text(WIDTH - 24, top - 16, "at least 0.97 in", anchor="end")
    for ratio in (tick for tick in possible_ticks if low <= tick <= high):
        kind = "both" if ratio == 1 else "grid"
        yield f'<path class="{kind}" d="M{x(ratio):.1f},{top - 8}V{bottom}"/>' + text(
            x(ratio), bottom + 18, f"{ratio:g}", anchor="middle"
        )
    yield text(x(1), top - 16, one, "text", "middle")
    for i, row in enumerate(rows):
        y = top + step * i + step / 2
        name, median = plain(row[key]), float(row["median"].split()[0])
        least, most = float(row["10 %"]), float(row["90 %"])
        yield text(left - 10, y + 4, name, "text", "end")
        yield f'<path class="axis" stroke-width="2" d="M{x(least):.1f},{y:.1f}H{x(most):.1f}"/>'
        yield f'<circle class="dot" cx="{x(median):.1f}" cy="{y:.1f}" r="5"><title>{name}: {row["median"]}</title></circle>'
        yield text(WIDTH - 24, y + 4, row["at least 0.97"], "text", "end")
    yield text(right, bottom + 38, "ratio, logarithmic", anchor="end")


def arena_messages(_page):
    """Draws the delay of messages with each stack over recorded networks."""
    return message_delays(stored_rows("arena", "recorded-messages"))


def message_delays(rows):
    """Draws the delay of messages: median, 99 %, and 99 % in the worst tenth of the sections."""
    names = ("median, ms", "99 %, ms", "99 % in the worst tenth, ms")
    rows = [(plain(row["stack"]), [float(row[name]) for name in names]) for row in rows]
    finite = [delay for _, delays in rows for delay in delays if math.isfinite(delay)]
    left, right, step, top = 130, WIDTH - 130, 22, 84
    ticks = [tick for tick in (10, 20, 50, 100, 200, 500, 1000, 2000, 5000) if tick <= max(finite)]
    ticks = ticks[max(0, sum(tick <= min(finite) for tick in ticks) - 1) :]
    most, bottom = max(finite), top + step * len(rows)

    def x(delay):
        return left + (right - left) * math.log(delay / ticks[0]) / math.log(most / ticks[0])

    yield bottom + 48
    yield text(24, 28, "Delay of messages over two recorded networks, in ms", "text", more=BOLD)
    for at, kind, words in (
        (30, "dot", "half of the messages"),
        (210, "odd", "99 % of them"),
        (330, "hollow", "99 % in the worst tenth of the sections"),
    ):
        yield f'<circle class="{kind}" cx="{at}" cy="48" r="4"/>' + text(at + 10, 52, words)
    for tick in ticks:
        yield f'<path class="grid" d="M{x(tick):.1f},{top - 8}V{bottom}"/>' + text(
            x(tick), bottom + 18, f"{tick}", anchor="middle"
        )
    for i, (name, delays) in enumerate(sorted(rows, key=lambda row: row[1][1])):
        y = top + step * i + step / 2
        yield text(left - 10, y + 4, name, "text", "end")
        shown = [delay for delay in delays if math.isfinite(delay)]
        yield f'<path class="axis" d="M{x(shown[0]):.1f},{y:.1f}H{x(shown[-1]):.1f}"/>'
        for delay, kind in zip(shown, ("dot", "odd", "hollow"), strict=False):
            yield f'<circle class="{kind}" cx="{x(delay):.1f}" cy="{y:.1f}" r="5"><title>{name}: {delay:g} ms</title></circle>'
        if len(shown) < len(delays):
            yield text(WIDTH - 24, y + 4, "some missing", anchor="end")
    yield text(right, bottom + 38, "delay, logarithmic", anchor="end")


TIME = re.compile(r"(?P<median>[\d.]+) s \((?P<least>[\d.]+) to (?P<most>[\d.]+)\)")


def beside(page):
    """Times until a receiver had everything, with the range of the rounds."""
    rows = rows_below(page, "| | both links up |")
    settings = [name for name in rows[0] if name]
    values = {
        (row[""], name): [float(part) for part in TIME.fullmatch(row[name]).groups()]
        for row in rows
        for name in settings
    }
    bars = [(name, plain(row[""]), values[row[""], name]) for name in settings for row in rows]
    title = "Time until the receiver had 20 MB: median and range of the rounds"
    yield from _bars(title, "s", bars, 2, 1)


def interop(page):
    """Rates between the endpoints that speak with each other."""
    rows = rows_below(page, "| from |")
    bars = [("", f"{plain(row['from'])} to {plain(row['to'])}", [float(row["MB/s"])] * 3) for row in rows]
    title = "Rate over one pair of virtual interfaces: medians"
    yield from _bars(title, "MB/s", bars, 100, 0)


def _bars(title, unit, bars, tick, digits):
    """Bars from zero, in groups with a name each, and ranges where the ends of one differ."""
    left, step, top = 250, 28, 52
    most = max(high for _, _, (_, _, high) in bars)
    groups = list(dict.fromkeys(group for group, _, _ in bars))
    bottom = top + step * len(bars) + 24 * sum(map(bool, groups))

    def x(value):
        return left + (RIGHT - 90 - left) * value / most

    yield bottom + 36
    yield text(24, 28, title, "text", more=BOLD)
    for i in range(int(most // tick) + 1):
        yield f'<path class="grid" d="M{x(i * tick):.1f},{top - 8}V{bottom}"/>' + text(
            x(i * tick), bottom + 18, f"{i * tick} {unit}", anchor="middle"
        )
    y, last = top, ""
    for group, name, (value, low, high) in bars:
        if group != last:
            last, y = group, y + 24
            yield text(24, y - 7, group)
        yield text(left - 10, y + 15, name, "text", "end")
        yield f'<rect class="fibre" x="{left}" y="{y + 1}" width="{x(value) - left:.1f}" height="18"/>'
        if low < high:
            yield f'<path class="both" stroke-width="2" d="M{x(low):.1f},{y + 10}H{x(high):.1f}"/>'
        yield text(max(x(value), x(high)) + 8, y + 15, f"{value:.{digits}f} {unit}", "text")
        y += step
