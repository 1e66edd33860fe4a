"""Reports in headless Chromium, from a file and without network: drawings and controls."""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from report_samples import swept, write_traces

from anabranch.command.view import main as view
from anabranch.reporting import report
from anabranch.reporting.palette import DARK, LIGHT, contrast
from anabranch.series import Series

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

LINE_PANELS = ("throughput", "cwnd", "outstanding", "srtt", "queue")
PANELS = (*LINE_PANELS, "events", "blocked", "decisions")
# Plotly's own data of its drawing: each trace with its meaning and its points.
TRACES = """element => element.data.map(trace => ({
  ...trace.meta, color: trace.line && trace.line.color, dash: trace.line && trace.line.dash, yaxis: trace.yaxis,
  x: Array.from(trace.x), y: Array.from(trace.y),
}))"""
# Paths and marks in the document, by their subplot.
DRAWN = """element => Object.fromEntries([...element.querySelectorAll('.overplot > g')].map(plot => [
  plot.getAttribute('class'),
  [...plot.querySelectorAll('.scatterlayer path')].filter(path => (path.getAttribute('d') || '').length > 4).length,
]))"""
# Shapes of each subplot in the document.
SHAPES = """element => [...element.querySelectorAll('.overplot > g')].map(
  plot => plot.querySelector('.scatterlayer').innerHTML
)"""


@dataclass
class Opened:
    """Page, with requests and errors that should not occur."""

    page: Page
    requests: list[str] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    @property
    def chart(self) -> Any:
        return self.page.locator("#timeline")

    def traces(self, panel: str) -> list[dict[str, Any]]:
        return [trace for trace in self.chart.evaluate(TRACES) if trace.get("panel") == panel]

    def drawn(self) -> dict[str, int]:
        """Returns the number of paths and marks in each subplot, from top to bottom."""
        counts: dict[str, int] = self.chart.evaluate(DRAWN)
        return counts

    def range(self) -> tuple[float, float]:
        start, end = self.chart.evaluate("element => element.layout.xaxis.range")
        return start, end

    def box(self, group: str, name: str) -> Any:
        return self.page.locator(f'[data-group="{group}"] label', has_text=re.compile(f"^{re.escape(name)}$"))

    def values(self) -> dict[str, dict[str, str]]:
        """Returns the table of values: by path, by column."""
        rows = self.page.locator("#timeline-values tr").all()
        cells = [[cell.strip() for cell in row.locator("th, td").all_inner_texts()] for row in rows]
        names = [re.split(r"\s", cell)[0] for cell in cells[0]]
        return {row[0]: dict(zip(names, row, strict=True)) for row in cells[1:]}

    def settle(self) -> None:
        """Waits until the browser has drawn all changes."""
        self.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def label(self) -> list[str]:
        """Returns the lines of the label at the pointer; none if it is hidden."""
        tip = self.page.locator("#timeline-tip")
        return tip.inner_text().splitlines() if tip.is_visible() else []

    def point_at(self, panel: str, part: float, row: float = 0.5) -> float:
        """Moves the mouse over a panel, to these fractions of its width and height, and returns the time there."""
        x, y = self.place(panel, part, row)
        self.page.mouse.move(x - 3, y)
        self.page.mouse.move(x, y)
        self.settle()
        return float(self.page.locator("#timeline-values output").inner_text().removesuffix(" s"))

    def place(self, panel: str, part: float, row: float = 0.5) -> tuple[float, float]:
        """Scrolls to a panel, and returns a position in it in coordinates of the window."""
        index = PANELS.index(panel)
        name = "xy" if index == 0 else f"xy{index + 1}"
        layer = self.page.locator(f"#timeline .draglayer .{name} .nsewdrag")
        # The table of values remains at the top of the window.
        layer.evaluate("element => window.scrollBy(0, element.getBoundingClientRect().top - 400)")
        box = layer.bounding_box()
        assert box is not None
        return box["x"] + part * box["width"], box["y"] + row * box["height"]

    def drag(self, panel: str, start: float, end: float) -> None:
        (x, y), (to, _) = self.place(panel, start), self.place(panel, end)
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move((x + to) / 2, y)
        self.page.mouse.move(to, y)
        self.page.mouse.up()
        self.wait_for(lambda: self.range() != (0, 8))

    def double_click(self, panel: str, holds: Callable[[], bool]) -> None:
        """Double-clicks until a condition is true, since Plotly counts two clicks that are over 300 ms apart singly."""

        def clicked() -> bool:
            self.page.mouse.dblclick(*self.place(panel, 0.5))
            self.settle()
            return holds()

        self.wait_for(clicked)

    def wait_for(self, holds: Callable[[], bool]) -> None:
        """Waits until a condition is true, since the end of drawing is not reported."""
        for _ in range(400):
            if holds():
                return
            self.page.wait_for_timeout(25)
        raise AssertionError("waited in vain")

    def restore(self) -> None:
        """Shows the first run as it was when the page was opened."""
        self.page.locator('[data-do="all"]').click()
        self.page.mouse.move(1, 1)
        self.page.locator('[name="drag"][value="zoom"]').check()
        for group, count in (("tracks", 1), ("paths", 9), ("panels", 9)):
            boxes = self.page.locator(f'[data-group="{group}"] input').all()
            for box in boxes[:count]:
                box.check()
            for box in boxes[count:]:
                box.uncheck()
        self.settle()


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_traces(tmp_path_factory.mktemp("traces"))


@pytest.fixture(scope="module")
def reported(traces: Path) -> Path:
    return report(traces)


@pytest.fixture(scope="module")
def shared(browser: Browser, reported: Path) -> Iterator[Opened]:
    with opened(browser, reported) as page:
        yield page


@pytest.fixture
def shown(shared: Opened) -> Opened:
    shared.restore()
    return shared


@contextmanager
def opened(browser: Browser, file: Path, **settings: Any) -> Iterator[Opened]:
    """Opens a report in a profile of its own, offline. Every request is refused and fails the test."""
    context = browser.new_context(**{"viewport": {"width": 1280, "height": 1000}, "offline": True, **settings})
    page = context.new_page()
    found = Opened(page)

    def answer(route: Any) -> None:
        if route.request.url == file.as_uri():
            route.continue_()
        else:
            found.requests.append(route.request.url)
            route.abort()

    context.route("**/*", answer)
    page.on("console", lambda message: found.complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: found.complaints.append(f"error: {error}"))
    page.goto(file.as_uri())
    if page.locator("#timeline").count():
        page.wait_for_selector("html[data-timeline=drawn]", timeout=60_000)
    yield found
    assert found.requests == []
    assert found.complaints == []
    context.close()


def series(traces: Path, scheme: str = "cmt") -> Series:
    return Series(traces / f"{scheme}-seed1")


def row_at(traces: Path, path: str, time_s: float, scheme: str = "cmt") -> Any:
    """Returns the row of a path that is valid at a time, which may be rounded to a tenth of a millisecond."""
    rows = series(traces, scheme).paths()
    return rows[(rows["path"] == path) & (rows["time_s"] <= time_s)].iloc[-1]


def test_every_panel_is_drawn_with_data(shown: Opened) -> None:
    for panel in LINE_PANELS:
        lines = shown.traces(panel)
        assert {path for line in lines for path in line["paths"]} == {"path-1", "path-2"}
        assert all(len(line["x"]) > 50 for line in lines)
    for panel in PANELS[len(LINE_PANELS) :]:
        assert sum(len(trace["x"]) for trace in shown.traces(panel)) > 5
    drawn = shown.drawn()
    assert len(drawn) == len(PANELS)
    assert min(drawn.values()) >= 2
    assert drawn["xy6"] > 10


def test_axes_of_all_panels_begin_and_end_at_the_same_places(shown: Opened) -> None:
    boxes = shown.page.locator("#timeline .draglayer .nsewdrag").all()
    edges = {(box.bounding_box()["x"], box.bounding_box()["width"]) for box in boxes}
    assert len(boxes) == len(PANELS)
    assert len(edges) == 1


def test_path_can_be_hidden_and_shown(shown: Opened) -> None:
    before = shown.drawn()
    shown.box("paths", "path-2").click()
    shown.settle()
    after = shown.drawn()
    for panel in LINE_PANELS:
        assert {path for line in shown.traces(panel) for path in line["paths"]} == {"path-1"}
    assert all(after[name] < before[name] for name in ("xy", "xy2", "xy3", "xy4", "xy5", "xy6"))
    assert list(shown.values()) == ["path-1"]
    shown.box("paths", "path-2").click()
    shown.settle()
    assert shown.drawn() == before
    assert list(shown.values()) == ["path-1", "path-2"]


def test_run_can_be_shown_and_hidden(shown: Opened) -> None:
    alone = shown.traces("cwnd")
    shown.box("tracks", "cmt-pf").click()
    shown.settle()
    both = shown.traces("cwnd")
    assert {tuple(line["tracks"]) for line in both} == {(0,), (1,)}
    assert len(both) == 2 * len(alone)
    assert list(shown.values()) == ["cmt path-1", "cmt path-2", "cmt-pf path-1", "cmt-pf path-2"]
    assert "Colour is the run, dash the path." in shown.page.locator(".colours").inner_text()
    shown.box("tracks", "cmt").click()
    shown.settle()
    assert {tuple(line["tracks"]) for line in shown.traces("cwnd")} == {(1,)}
    assert list(shown.values()) == ["path-1", "path-2"]


def test_paths_differ_in_dash_and_runs_in_colour(shown: Opened) -> None:
    shown.box("tracks", "cmt-pf").click()
    shown.settle()
    lines = [line for line in shown.traces("cwnd") if line["channel"] == "cwnd"]
    assert len({(line["color"], line["dash"]) for line in lines}) == 4
    dashes = {path: {line["dash"] for line in lines if line["paths"] == [path]} for path in ("path-1", "path-2")}
    assert all(len(found) == 1 for found in dashes.values())
    assert dashes["path-1"] != dashes["path-2"]
    colours = {track: {line["color"] for line in lines if line["tracks"] == [track]} for track in (0, 1)}
    assert all(len(found) == 1 for found in colours.values())
    assert colours[0] != colours[1]


def test_panel_can_be_hidden_and_shown(shown: Opened) -> None:
    height = shown.chart.bounding_box()["height"]
    shown.box("panels", "Queue").click()
    shown.settle()
    assert shown.traces("queue") == []
    assert len(shown.drawn()) == len(PANELS) - 1
    assert shown.chart.bounding_box()["height"] < height
    shown.box("panels", "Queue").click()
    shown.settle()
    assert shown.traces("queue")
    assert shown.chart.bounding_box()["height"] == height


def test_page_without_panels_or_runs_has_no_errors(shown: Opened) -> None:
    for group in ("panels", "tracks"):
        for box in shown.page.locator(f'[data-group="{group}"] input').all():
            box.uncheck()
        shown.settle()
    assert shown.values() == {}
    assert shown.chart.evaluate("element => element.data.length") == 0


def test_zooming_in_one_panel_zooms_all_of_them(shown: Opened) -> None:
    before = shown.chart.evaluate(SHAPES)
    shown.drag("srtt", 0.25, 0.5)
    start, end = shown.range()
    assert (start, end) == pytest.approx((2, 4), abs=0.05)
    after = shown.chart.evaluate(SHAPES)
    assert len(before) == len(PANELS)
    assert all(one != other for one, other in zip(before, after, strict=True))
    ticks = [float(text) for text in shown.page.locator("#timeline .xtick text").all_text_contents()]
    assert start <= min(ticks)
    assert max(ticks) <= end
    fields = [shown.page.locator(f'[name="{name}"]').input_value() for name in ("from", "to")]
    assert [float(text) for text in fields] == pytest.approx([start, end], abs=0.01)


def test_zooming_in_shows_changes_that_were_too_close_together(shown: Opened, traces: Path) -> None:
    shown.page.locator('[name="from"]').fill("1")
    shown.page.locator('[name="to"]').fill("1.2")
    shown.page.locator('[name="to"]').press("Enter")
    shown.wait_for(lambda: shown.range() == (1, 1.2))
    rows = series(traces).paths()
    rows = rows[(rows["path"] == "path-1") & rows["time_s"].between(1.001, 1.199)]
    changed = rows[rows["outstanding_bytes"] != rows["outstanding_bytes"].shift()].iloc[1:]
    (line,) = [line for line in shown.traces("outstanding") if line["paths"] == ["path-1"]]
    assert len(changed) > 10
    for time_s, value in zip(changed["time_s"], changed["outstanding_bytes"] / 1024, strict=True):
        nearest = int(np.argmin(np.abs(np.array(line["x"]) - time_s)))
        assert line["x"][nearest] == pytest.approx(time_s, abs=2e-6)
        assert line["y"][nearest] == pytest.approx(value, rel=1e-6)


def test_a_double_click_and_a_button_show_the_whole_run_again(shown: Opened) -> None:
    shown.drag("cwnd", 0.3, 0.6)
    shown.double_click("queue", lambda: shown.range() == (0, 8))
    shown.drag("cwnd", 0.3, 0.6)
    shown.page.locator('[data-do="all"]').click()
    shown.wait_for(lambda: shown.range() == (0, 8))


def test_dragging_can_move_the_view(shown: Opened) -> None:
    shown.page.locator('[data-do="in"]').click()
    shown.wait_for(lambda: shown.range() == (2, 6))
    shown.page.locator('[name="drag"][value="pan"]').check()
    shown.settle()
    (x, y), (to, _) = shown.place("srtt", 0.5), shown.place("srtt", 0.25)
    shown.page.mouse.move(x, y)
    shown.page.mouse.down()
    shown.page.mouse.move(to, y, steps=4)
    shown.page.mouse.up()
    shown.wait_for(lambda: shown.range() == pytest.approx((3, 7), abs=0.05))


def test_the_view_stays_within_the_run(shown: Opened) -> None:
    shown.page.locator('[data-do="in"]').click()
    for name in ("later", "later", "later", "later"):
        shown.page.locator(f'[data-do="{name}"]').click()
    shown.wait_for(lambda: shown.range() == (4, 8))
    shown.page.locator('[data-do="out"]').click()
    shown.wait_for(lambda: shown.range() == (0, 8))


@pytest.mark.parametrize("part", [0.12, 0.4, 0.81])
def test_pointing_shows_what_the_trace_has_at_that_time(shown: Opened, traces: Path, part: float) -> None:
    time_s = shown.point_at("cwnd", part)
    assert time_s == pytest.approx(8 * part, abs=0.05)
    for path, values in shown.values().items():
        # The page rounds the time to a tenth of a millisecond: the values just before or just after are right too.
        rows = [row_at(traces, path, time_s + off) for off in (-6e-5, 0, 6e-5)]
        for name, column, divisor in (
            ("cwnd", "cwnd_bytes", 1024),
            ("ssthresh", "ssthresh_bytes", 1024),
            ("outstanding", "outstanding_bytes", 1024),
            ("srtt", "srtt_ms", 1),
        ):
            expected = [row[column] / divisor for row in rows]
            shown_value = float(values[name].replace(",", ""))
            assert any(shown_value == pytest.approx(value, abs=0.051) for value in expected), (path, name)
        assert values["state"] in {row["state"] for row in rows}


@pytest.mark.parametrize(
    ("panel", "column", "divisor", "unit"),
    [
        ("cwnd", "cwnd_bytes", 1024, "KiB"),
        ("outstanding", "outstanding_bytes", 1024, "KiB"),
        ("srtt", "srtt_ms", 1, "ms"),
    ],
)
def test_the_label_at_the_pointer_says_time_and_value_with_units(
    shown: Opened, traces: Path, panel: str, column: str, divisor: int, unit: str
) -> None:
    time_s = shown.point_at(panel, 0.4)
    head, *lines = shown.label()
    assert float(head.removesuffix(" s")) == pytest.approx(time_s, abs=1e-4)
    (line,) = [line for line in lines if line.startswith("path-1: ")]
    value, found_unit = line.removeprefix("path-1: ").split()
    assert found_unit == unit
    near = [row_at(traces, "path-1", time_s + off)[column] / divisor for off in (-6e-5, 0, 6e-5)]
    assert any(float(value) == pytest.approx(each, abs=0.051) for each in near)


def test_pointing_at_a_decision_shows_its_rules(shown: Opened) -> None:
    shown.point_at("decisions", 0.2)
    texts = " ".join(shown.label())
    rule = "path-1: \\d+ %, \\d+ decisions?: fills the path's window in turn \N{MULTIPLICATION SIGN}\\d+"
    assert re.search(rule, texts)


def test_pointing_at_a_failed_path_shows_its_state_and_when_it_held(shown: Opened, traces: Path) -> None:
    shown.box("tracks", "cmt-pf").click()
    shown.box("tracks", "cmt").click()
    shown.settle()
    shown.point_at("events", 0.6, row=0.75)
    assert shown.values()["path-2"]["state"] == "PotentiallyFailed"
    label = " ".join(shown.label())
    held = re.search(r"PotentiallyFailed from ([\d.]+) s to ([\d.]+) s", label)
    assert held
    (timeout_s,) = series(traces, "cmt-pf").timeouts()["time_s"]
    assert float(held[1]) == pytest.approx(timeout_s, abs=2e-6)
    shown.point_at("events", 0.6, row=0.25)
    assert "PotentiallyFailed" not in " ".join(shown.label())


def test_losses_panel_shows_only_the_event_at_the_pointer(shown: Opened, traces: Path) -> None:
    tsns = series(traces).tsn()
    first = tsns["tsn"].min()
    losses = series(traces).losses()
    losses = losses[losses["path"] == "path-1"]
    lost = losses.iloc[0]
    shown.point_at("events", lost["time_s"] / 8, row=0.25)
    _, where, *lines = shown.label()
    (line,) = [line for line in lines if line.startswith("declared lost")]
    assert where == "path-1"
    assert f"{lost['time_s']:.6f} s" in line
    assert f"TSN {lost['tsn'] - first}" in line
    assert lost["cause"] in line
    # At a time without events on a path there is no label.
    happened = [*losses["time_s"], *series(traces).retransmissions()["time_s"], *series(traces).drops()["time_s"]]
    free = next(part for part in np.arange(0.05, 1, 0.01) if min(abs(np.array(happened) - 8 * part)) > 0.1)
    shown.point_at("events", free, row=0.25)
    assert shown.label() == []


def test_no_label_is_without_a_value(shown: Opened) -> None:
    for panel in PANELS:
        for part in (0.02, 0.33, 0.5, 0.97):
            shown.point_at(panel, part)
            assert len(shown.label()) != 1
            for line in shown.label()[1:]:
                assert re.search(r"\d|^path-\d$", line), (panel, line)
    shown.page.mouse.move(1, 1)
    shown.settle()
    assert shown.label() == []


def test_blocking_is_shown_for_as_long_as_it_lasted(shown: Opened, traces: Path) -> None:
    blocked = series(traces).blocked()
    for path, spans in blocked.groupby("path", observed=True):
        (trace,) = [each for each in shown.traces("blocked") if each["paths"] == [path]]
        below = _below(shown, trace)
        covered = np.clip((below - np.array(trace["y"])) / 0.84, 0, 1)
        width = (trace["x"][1] - trace["x"][0]) * len(covered)
        total_s = (spans["end_s"] - spans["start_s"]).sum()
        assert covered.mean() * width == pytest.approx(total_s, rel=0.01, abs=0.01)


def _below(shown: Opened, trace: dict[str, Any]) -> Any:
    """Returns the base of a part of a row."""
    everything = shown.chart.evaluate(TRACES)
    place = next(index for index, each in enumerate(everything) if each == trace)
    return np.array(everything[place - 1]["y"])


def test_keys_move_the_cursor_and_zoom(shown: Opened) -> None:
    shown.chart.focus()
    read = shown.page.locator("#timeline-values output")
    shown.page.keyboard.press("Home")
    assert read.inner_text() == "0.0000 s"
    shown.page.keyboard.press("ArrowRight")
    assert read.inner_text() == "0.0800 s"
    shown.page.keyboard.press("Shift+ArrowRight")
    assert read.inner_text() == "0.8800 s"
    shown.page.keyboard.press("ArrowLeft")
    assert read.inner_text() == "0.8000 s"
    shown.page.keyboard.press("+")
    shown.wait_for(lambda: shown.range()[1] - shown.range()[0] == pytest.approx(4))
    shown.page.keyboard.press("End")
    shown.wait_for(lambda: shown.range() == (4, 8))
    shown.page.keyboard.press("0")
    shown.wait_for(lambda: shown.range() == (0, 8))


def test_controls_are_reached_and_used_by_keyboard(shown: Opened) -> None:
    shown.page.locator('[data-group="paths"] input').first.focus()
    shown.page.keyboard.press("Space")
    shown.settle()
    assert list(shown.values()) == ["path-2"]
    shown.page.locator('[data-do="in"]').focus()
    shown.page.keyboard.press("Enter")
    shown.wait_for(lambda: shown.range() == (2, 6))
    reached = shown.page.locator("button, input, summary, #timeline").evaluate_all(
        "elements => elements.map(element => element.tabIndex)"
    )
    assert len(reached) > 20
    assert min(reached) >= 0


def hexadecimal(colour: str) -> str:
    """Returns a colour of the browser as `#rrggbb`."""
    return "#" + "".join(f"{int(part):02x}" for part in re.findall(r"\d+", colour)[:3])


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out_from_the_paper(shown: Opened, scheme: Any) -> None:
    shown.page.emulate_media(color_scheme=scheme)
    shown.settle()
    try:
        paper = shown.page.locator("body").evaluate("element => getComputedStyle(element).backgroundColor")
        paper = hexadecimal(paper)
        assert paper == (LIGHT if scheme == "light" else DARK)["paper"]
        for place in ("body", ".lead", ".note", "a", "td"):
            ink = shown.page.locator(place).first.evaluate("element => getComputedStyle(element).color")
            assert contrast(hexadecimal(ink), paper) >= 4.5, place
        plot = shown.page.locator("#timeline .main-svg").first.evaluate("element => element.style.background")
        assert hexadecimal(plot) == paper
        strokes = shown.page.locator("#timeline .scatterlayer .js-line").evaluate_all(
            "lines => lines.map(getComputedStyle).filter(each => each.strokeWidth !== '0px').map(each => each.stroke)"
        )
        assert len(strokes) >= 12
        assert all(contrast(hexadecimal(stroke), paper) >= 3 for stroke in strokes)
    finally:
        shown.page.emulate_media(color_scheme="light")


def test_a_phone_shows_the_chart_in_its_width(browser: Browser, reported: Path) -> None:
    phone = {"viewport": {"width": 390, "height": 844}, "is_mobile": True, "has_touch": True}
    with opened(browser, reported, **phone) as found:
        assert found.page.evaluate("document.documentElement.scrollWidth") == 390
        assert found.chart.bounding_box()["width"] > 340
        assert len(found.drawn()) == len(PANELS)
        x, y = found.place("cwnd", 0.5)
        found.page.touchscreen.tap(x, y)
        found.settle()
        time_s = float(found.page.locator("#timeline-values output").inner_text().removesuffix(" s"))
        assert time_s == pytest.approx(4, abs=0.1)


@pytest.fixture(scope="module")
def reported_results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("swept")
    return report(swept(folder, seeds=2), folder / "report.html")


def test_a_report_of_results_opens_as_quietly(browser: Browser, reported_results: Path) -> None:
    with opened(browser, reported_results) as found:
        for figure in found.page.locator("figure svg").all():
            box = figure.bounding_box()
            assert box is not None
            assert box["width"] > 300
            assert 200 < box["height"] < 600
        assert found.page.locator("figure svg").count() >= 3
        assert len(found.drawn()) == len(PANELS)


FIGURE_COLOURS = """figures => figures.map(figure => {
  const of = (selector, key) => [...figure.querySelectorAll(selector)].map(each => getComputedStyle(each)[key]);
  return {
    text: of('g[id*="-text_"] use', 'fill'), grid: of('g[id*="tick_"] path[clip-path]', 'stroke'),
    paper: of('[id$="-patch_1"] path', 'fill'), series: of('[id*="-line2d_"] > path[clip-path]', 'stroke'),
  };
})"""


@pytest.mark.parametrize(("scheme", "palette"), [("light", LIGHT), ("dark", DARK)])
def test_figures_are_on_the_paper_of_the_page(
    browser: Browser, reported_results: Path, scheme: str, palette: dict[str, str]
) -> None:
    with opened(browser, reported_results, color_scheme=scheme) as found:
        figures = found.page.locator("figure svg").evaluate_all(FIGURE_COLOURS)
    assert len(figures) >= 3
    for colours in figures:
        for kind, name in (("text", "ink"), ("grid", "grid"), ("paper", "paper")):
            assert {hexadecimal(colour) for colour in colours[kind]} == {palette[name]}, kind
        for stroke in colours["series"]:
            drawn = hexadecimal(stroke)
            assert drawn == palette["grid"] or contrast(drawn, palette["paper"]) >= 3


def test_any_point_and_seed_can_be_chosen_with_its_trace_command(browser: Browser, tmp_path: Path) -> None:
    results = swept(tmp_path, seeds=3, overrides={"run.duration": "1 s"})
    choices = ["all@path.path-2.loss=0", "cmt@path.path-2.loss=0.05,seed=2"]
    file = report(results, tmp_path / "report.html", timeline=choices)
    with opened(browser, file) as found:
        point, seed = (found.page.locator(f'select[name="{name}"]') for name in ("point", "seed"))
        absent = found.page.locator(".absent")
        runs = '[data-group="tracks"] label:visible'
        assert [text.strip() for text in point.locator("option").all_inner_texts()] == [
            *("all with traces", "path.path-2.loss = 0", "path.path-2.loss = 0.05"),
        ]
        assert seed.locator("option").all_inner_texts()[3] == "3 (no traces here)"
        assert found.page.locator(runs).count() == 4
        assert not absent.is_visible()
        point.select_option("path.path-2.loss = 0.05")
        found.settle()
        assert found.page.locator(runs).all_inner_texts() == ["cmt @ 0.05, seed 2"]
        assert {tuple(line["tracks"]) for line in found.traces("cwnd")} == {(3,)}
        seed.select_option(label="2")
        assert "No traces here of cmt-pf, sctp at path.path-2.loss = 0.05, seed 2. To add them" in absent.inner_text()
        seed.select_option(label="3 (no traces here)")
        assert not found.chart.is_visible()
        command = absent.locator("code").inner_text()
        point.select_option("path.path-2.loss = 0")
        seed.select_option(label="1")
        found.settle()
        assert found.chart.is_visible()
        assert not absent.is_visible()
    words = shlex.split(command)
    assert words[:3] == ["anabranch", "report", "results"]
    asked = words[4::2]
    assert asked == [
        "all@path.path-2.loss=0,seed=1",
        "cmt@path.path-2.loss=0.05,seed=2",
        "all@path.path-2.loss=0.05,seed=3",
    ]
    again = report(results, tmp_path / "again.html", timeline=asked)
    with opened(browser, again) as found:
        assert found.page.locator('[data-group="tracks"] label').count() == 7


def test_a_log_of_quic_has_the_panels_that_it_has_events_for(browser: Browser, tmp_path: Path) -> None:
    log = Path(__file__).parent / "data" / "qlog" / "quic-go.sqlog"
    records = [json.loads(record) for record in log.read_text(encoding="utf-8").split("\x1e")[2:]]
    lost = next(record for record in records if record["name"] == "recovery:packet_lost")
    lost_s = (lost["time"] - records[0]["time"]) / 1000
    file = tmp_path / "view.html"
    assert view([str(log), "--out", str(file), "--quiet"]) == 0
    with opened(browser, file) as found:
        panels = found.page.locator('[data-group="panels"] label').all_inner_texts()
        assert [text.strip() for text in panels] == [
            *("Throughput", "Window, ssthresh", "Outstanding", "Round-trip time", "Losses"),
        ]
        columns = [text.split()[0] for text in found.page.locator("#timeline-values thead th").all_inner_texts()]
        assert columns == ["Path", "throughput", "received", "cwnd", "outstanding", "srtt"]
        found.page.locator('[name="from"]').fill("0.008")
        found.page.locator('[name="to"]').fill("0.011")
        found.page.locator('[name="to"]').press("Enter")
        found.wait_for(lambda: found.range() == (0.008, 0.011))
        row = found.page.locator("#timeline .draglayer .xy5 .nsewdrag")
        row.scroll_into_view_if_needed()
        box = row.bounding_box()
        assert box is not None
        found.page.mouse.move(box["x"] + (lost_s - 0.008) / 0.003 * box["width"], box["y"] + box["height"] / 2)
        found.settle()
        number = lost["data"]["header"]["packet_number"]
        (label,) = [text for text in found.label() if text.startswith("declared lost at ")]
        assert label.endswith(f" s, packet {number}, reordering_threshold, 1RTT")
        # Times are rounded up to a microsecond.
        assert float(label.split()[3]) == pytest.approx(lost_s, abs=1.1e-6)


def test_no_row_of_figures_ends_with_a_hole(browser: Browser, reported_results: Path) -> None:
    with opened(browser, reported_results) as found:
        boxes = [figure.bounding_box() for figure in found.page.locator("figure").all()]
        room = found.page.locator(".figures").bounding_box()
    assert room is not None
    rows: dict[float, list[float]] = {}
    for box in boxes:
        assert box is not None
        rows.setdefault(box["y"], []).append(box["x"] + box["width"])
    assert len(boxes) == 4
    assert [max(ends) for ends in rows.values()] == pytest.approx([room["x"] + room["width"]] * len(rows), abs=1)


def test_print_is_light_on_any_screen_and_no_wider_than_a_page(browser: Browser, reported: Path) -> None:
    with opened(browser, reported, color_scheme="dark") as found:
        found.page.emulate_media(media="print", color_scheme="dark")
        found.page.evaluate("dispatchEvent(new Event('beforeprint'))")
        found.settle()
        paper = found.page.locator("#timeline .main-svg").first.evaluate("element => element.style.background")
        box = found.chart.bounding_box()
        assert hexadecimal(paper) == LIGHT["paper"]
        # A4 with usual margins has 680 by 980 pixels. The texts of the chart are on the same page.
        assert box["width"] <= 680
        assert box["height"] < 800
        assert not found.page.locator(".controls").is_visible()
        found.page.emulate_media(media="screen", color_scheme="dark")
        found.page.evaluate("dispatchEvent(new Event('afterprint'))")
        found.settle()
        assert found.chart.bounding_box()["width"] > 1000


def test_one_sided_recording_has_no_queues_and_script_text_stays_text(
    browser: Browser, traces: Path, tmp_path: Path
) -> None:
    import tomli
    import tomli_w

    nasty = '</script><img src=x onerror=alert(1)><b onmouseover="alert(2)">cmt'
    folder = tmp_path / "traces"
    shutil.copytree(traces / "cmt-seed1", folder, ignore=shutil.ignore_patterns("queues.csv", "scenario.toml"))
    manifest = tomli.loads((folder / "run.toml").read_text(encoding="utf-8"))
    manifest["scheme"] = manifest["sender"][0]["scheme"] = nasty
    manifest |= {"vantage": "host", "epoch_s": 1.0}
    (folder / "run.toml").write_text(tomli_w.dumps(manifest), encoding="utf-8")
    with opened(browser, report(folder, title=nasty)) as found:
        assert found.page.title() == nasty
        assert len(found.drawn()) == len(PANELS) - 1
        assert found.box("panels", "Queue").count() == 0
        assert found.page.locator("img").count() == 0
        assert found.page.locator('[data-group="tracks"] label').inner_text() == nasty
        found.page.mouse.move(*found.place("blocked", 0.3))
        found.settle()
        assert found.page.locator("[onerror], [onmouseover]").count() == 0
