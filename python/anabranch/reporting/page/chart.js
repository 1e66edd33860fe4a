// The chart: panels above each other on one axis of time, drawn anew whenever the view or what is shown changes.

const LINE_HEIGHT = 118;
const ROW_HEIGHT = 44;
const TITLE_HEIGHT = 26;
// On paper the chart is on one page, with room for what is said of it. A4 and Letter are wider than this.
const PRINT = { width: 660, lineHeight: 62, rowHeight: 30 };
const BOTTOM = 44;
// The height and the width of a letter of the labels above the chart.
const MARK_HEIGHT = 20;
const LETTER_WIDTH = 6.2;
// Points that are drawn at once, of all lines together: above, browsers begin to stutter.
const MOST_DRAWN = 60000;
const CONFIG = {
  displaylogo: false,
  responsive: false,
  doubleClick: false,
  modeBarButtons: [["toImage"]],
  toImageButtonOptions: { format: "svg", filename: "timeline" },
};

class Chart {
  constructor(element, timeline) {
    this.element = element;
    this.timeline = timeline;
    this.shown = {
      tracks: new Set([firstShown(timeline)]),
      paths: new Set(timeline.paths),
      panels: new Set(panelsOf(timeline).map(({ key }) => key)),
    };
    this.from = 0;
    this.to = timeline.end_s;
    this.cursor = timeline.end_s / 2;
    this.isPrinting = false;
    // A finger on the chart scrolls the page, and buttons zoom.
    this.drag = matchMedia("(pointer: coarse)").matches ? false : "zoom";
    this.drawnListeners = [];
    this.cursorListeners = [];
    // What the pointer is on: panel, row and moment; null while it is on nothing.
    this.pointed = null;
    this.pointedListeners = [];
    this.cursorLine = element.parentElement.querySelector(".cursor");
  }

  async start() {
    await this.draw();
    this.element.on("plotly_relayout", (change) => {
      if ("xaxis.range[0]" in change) this.show(change["xaxis.range[0]"], change["xaxis.range[1]"]);
    });
    this.element.on("plotly_doubleclick", () => this.reset());
    for (const name of ["pointermove", "pointerdown"]) {
      this.element.addEventListener(name, (event) => this.pointAt(event.clientX, event.clientY));
    }
    this.element.addEventListener("pointerleave", () => this.setPointed(null));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    addEventListener("beforeprint", () => this.setPrinting(true));
    addEventListener("afterprint", () => this.setPrinting(false));
    let width = this.element.clientWidth;
    new ResizeObserver(() => {
      if (this.isPrinting || this.element.clientWidth === width) return;
      width = this.element.clientWidth;
      this.draw();
    }).observe(this.element);
  }

  // Paper is light and has a width of its own.
  setPrinting(isPrinting) {
    this.isPrinting = isPrinting;
    document.documentElement.toggleAttribute("data-print", isPrinting);
    this.element.style.width = isPrinting ? `${PRINT.width}px` : "";
    this.draw();
  }

  // Moments within the run, at least ten ticks apart.
  show(from, to) {
    const end = this.timeline.end_s;
    const span = Math.min(Math.max(to - from, 10 * this.timeline.tick_s), end);
    this.from = Math.min(Math.max(from, 0), end - span);
    this.to = this.from + span;
    return this.draw();
  }

  // A part of what is seen now, around its middle: less than 1 to zoom in, more to zoom out.
  zoom(factor, around = (this.from + this.to) / 2) {
    return this.show(around - (around - this.from) * factor, around + (this.to - around) * factor);
  }

  move(part) {
    const by = (this.to - this.from) * part;
    const span = this.to - this.from;
    const from = Math.min(Math.max(this.from + by, 0), this.timeline.end_s - span);
    return this.show(from, from + span);
  }

  reset() {
    return this.show(0, this.timeline.end_s);
  }

  pointAt(clientX, clientY) {
    const box = this.element.getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top];
    const time = this.from + (x - this.margin.l) * this.secondsPerPixel();
    const isInside = time >= this.from && time <= this.to;
    if (isInside) this.setCursor(time);
    const panel = this.panels.find(({ top, bottom }) => y >= top && y <= bottom);
    this.setPointed(isInside && panel ? { panel, row: rowAt(panel, y), time: this.cursor, x, y } : null);
  }

  secondsPerPixel() {
    const { l, r } = this.margin;
    return (this.to - this.from) / (this.element.clientWidth - l - r);
  }

  setPointed(pointed) {
    this.pointed = pointed;
    for (const listener of this.pointedListeners) listener();
  }

  setCursor(time) {
    this.cursor = Math.min(Math.max(time, 0), this.timeline.end_s);
    this.placeCursor();
    for (const listener of this.cursorListeners) listener();
  }

  placeCursor() {
    const { l } = this.margin;
    this.cursorLine.hidden = this.cursor < this.from || this.cursor > this.to;
    this.cursorLine.style.left = `${l + (this.cursor - this.from) / this.secondsPerPixel()}px`;
  }

  view() {
    const span = this.to - this.from;
    // Part of what is drawn is outside the view, for the moment in which it is dragged.
    const start = Math.max(this.from - span / 4, 0);
    const end = Math.min(this.to + span / 4, this.timeline.end_s);
    const lines = this.timeline.lines.filter((line) => isShown(line, this.shown)).length;
    const most = Math.min(this.element.clientWidth || 1000, MOST_DRAWN / (3 * Math.max(lines, 1)));
    const bins = Math.max(Math.round((Math.max(most, 150) * (end - start)) / span), 1);
    return { from: this.from, to: this.to, start, end, bins };
  }

  async draw() {
    const look = currentLook(this.timeline);
    const narrow = this.element.clientWidth < 640;
    const top = this.timeline.marks.length > 0 ? MARK_HEIGHT : 6;
    this.margin = { l: narrow ? 58 : 100, r: narrow ? 8 : 16, t: top, b: BOTTOM };
    const view = this.view();
    const panels = PANELS.filter(({ key }) => this.shown.panels.has(key)).map((panel) => ({
      ...panel,
      ...panelContent(panel, this.timeline, this.shown, view, look),
    }));
    const traces = panels.flatMap((panel, index) =>
      panel.traces.map((trace) => ({ ...trace, xaxis: "x", yaxis: axisName("y", index), showlegend: false })),
    );
    this.panels = placed(panels, top, this.isPrinting);
    // What was under the pointer is somewhere else now.
    this.pointed = null;
    await Plotly.react(this.element, traces, this.layout(panels, look, narrow), CONFIG);
    this.placeCursor();
    for (const listener of this.drawnListeners) listener(look);
  }

  layout(panels, look, narrow) {
    const heights = panels.map((panel) => heightOf(panel, this.isPrinting));
    const total = heights.reduce((sum, height) => sum + height, 0) || 1;
    const layout = {
      width: this.element.clientWidth,
      height: total + this.margin.t + this.margin.b,
      margin: { ...this.margin, autoexpand: false },
      paper_bgcolor: look.paper,
      plot_bgcolor: look.paper,
      font: { family: look.font, size: 12, color: look.ink },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: look.faint, activecolor: look.ink },
      // The page has a label of its own, which knows what is under the pointer.
      hovermode: false,
      dragmode: this.drag,
      showlegend: false,
      xaxis: this.timeAxis(panels, look),
      annotations: [],
      shapes: this.timeline.marks.map(({ time_s }) => ({
        ...{ type: "line", xref: "x", yref: "paper", x0: time_s, x1: time_s, y0: 0, y1: 1 },
        line: { color: look.loud, width: 1, dash: "dot" },
      })),
    };
    layout.annotations.push(...markLabels(this.timeline.marks, this, look));
    let top = 1;
    panels.forEach((panel, index) => {
      const upper = top - TITLE_HEIGHT / total;
      top -= heights[index] / total;
      layout[axisName("yaxis", index)] = valueAxis(panel, [Math.max(top, 0), upper], look, narrow);
      const keys = narrow ? [] : panelKey(panel, this.timeline, this.shown, look);
      layout.annotations.push(panelTitle(panel, upper, keys, narrow));
    });
    return layout;
  }

  timeAxis(panels, look) {
    return {
      range: [this.from, this.to],
      anchor: axisName("y", Math.max(panels.length - 1, 0)),
      title: { text: "time since the run began, s", standoff: 6, font: { size: 12 } },
      gridcolor: look.grid,
      zeroline: false,
      // The page has a cursor of its own, which goes through all panels.
      showspikes: false,
      exponentformat: "none",
    };
  }
}

// The first run in which more than one path got new data, since that is what a timeline of paths is for.
function firstShown(timeline) {
  const found = timeline.shares.find(({ ways, counts }) => {
    const used = ways.filter((name, way) => name !== WAIT && counts[way].some((count) => count > 0));
    return used.length > 1;
  });
  return found ? found.track : 0;
}

const axisName = (letter, index) => (index === 0 ? letter : `${letter}${index + 1}`);

// Labels of what the scenario changes, as far as they do not cover each other. The text below the chart has them all.
function markLabels(marks, chart, look) {
  const width = chart.element.clientWidth - chart.margin.l - chart.margin.r;
  const labels = [];
  let free = -Infinity;
  for (const { time_s, text } of marks) {
    const at = ((time_s - chart.from) / (chart.to - chart.from)) * width;
    const half = (text.length * LETTER_WIDTH) / 2;
    if (at < 0 || at > width || at - half < free) continue;
    free = at + half;
    labels.push({
      ...{ text: escapeText(text), x: time_s, xref: "x", y: 1, yref: "paper", yanchor: "bottom", showarrow: false },
      font: { size: 11, color: look.loud },
    });
  }
  return labels;
}

// Of a panel with its title, in pixels.
function heightOf({ rows }, isPrinting) {
  const [line, row] = isPrinting ? [PRINT.lineHeight, PRINT.rowHeight] : [LINE_HEIGHT, ROW_HEIGHT];
  return TITLE_HEIGHT + (rows ? Math.max(rows.length, 1) * row : line);
}

// Panels with the pixels from the top of the chart at which each begins and ends, without its title.
function placed(panels, margin, isPrinting) {
  let bottom = margin;
  return panels.map((panel) => {
    const top = bottom + TITLE_HEIGHT;
    bottom += heightOf(panel, isPrinting);
    return { ...panel, top, bottom };
  });
}

// The row of a panel so many pixels from the top of the chart; null in a panel that has none.
function rowAt({ rows, top, bottom }, y) {
  if (!rows || rows.length === 0) return null;
  const row = Math.floor(((y - top) / (bottom - top)) * rows.length);
  return rows[Math.min(row, rows.length - 1)];
}

function panelTitle(panel, upper, keys, narrow) {
  const unit = panel.unit ? `, ${panel.unit}` : "";
  return {
    text: `<b>${narrow ? panel.name : panel.title}</b>${unit}${keys.length > 0 ? `:  ${keys.join("   ")}` : ""}`,
    ...{ xref: "paper", yref: "paper", x: 0, y: upper, xanchor: "left", yanchor: "bottom", xshift: -2 },
    ...{ showarrow: false, font: { size: 12 } },
  };
}

function valueAxis(panel, domain, look, narrow) {
  const axis = {
    ...{ domain, range: panel.range, fixedrange: true, gridcolor: look.grid, zeroline: false, tickfont: { size: 11 } },
    ...{ showline: true, linecolor: look.grid, mirror: true },
  };
  if (!panel.rows) return { ...axis, nticks: 4, separatethousands: true, exponentformat: "none" };
  const most = narrow ? 9 : 16;
  const shorten = (label) => escapeText(label.length > most ? `${label.slice(0, most - 1)}…` : label);
  const ticktext = panel.rows.map(({ labels }) => labels.map(shorten).join("<br>"));
  return { ...axis, tickvals: panel.rows.map((_, row) => row), ticktext, showgrid: false };
}
