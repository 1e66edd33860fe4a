// The chart: panels above each other on one axis of time, drawn anew whenever the view or what is shown changes.

const LINE_HEIGHT = 118;
const ROW_HEIGHT = 44;
const TITLE_HEIGHT = 26;
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
    // A finger on the chart scrolls the page, and buttons zoom.
    this.drag = matchMedia("(pointer: coarse)").matches ? false : "zoom";
    this.drawnListeners = [];
    this.cursorListeners = [];
    this.cursorLine = element.parentElement.querySelector(".cursor");
  }

  async start() {
    await this.draw();
    this.element.on("plotly_relayout", (change) => {
      if ("xaxis.range[0]" in change) this.show(change["xaxis.range[0]"], change["xaxis.range[1]"]);
    });
    this.element.on("plotly_doubleclick", () => this.reset());
    this.element.addEventListener("pointermove", (event) => this.pointAt(event.clientX));
    this.element.addEventListener("pointerdown", (event) => this.pointAt(event.clientX));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    let width = this.element.clientWidth;
    new ResizeObserver(() => {
      if (this.element.clientWidth === width) return;
      width = this.element.clientWidth;
      this.draw();
    }).observe(this.element);
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

  pointAt(clientX) {
    const box = this.element.getBoundingClientRect();
    const { l, r } = this.margin;
    const part = (clientX - box.left - l) / (box.width - l - r);
    if (part >= 0 && part <= 1) this.setCursor(this.from + part * (this.to - this.from));
  }

  setCursor(time) {
    this.cursor = Math.min(Math.max(time, 0), this.timeline.end_s);
    this.placeCursor();
    for (const listener of this.cursorListeners) listener();
  }

  placeCursor() {
    const { l, r } = this.margin;
    const part = (this.cursor - this.from) / (this.to - this.from);
    this.cursorLine.hidden = part < 0 || part > 1;
    this.cursorLine.style.left = `${l + part * (this.element.clientWidth - l - r)}px`;
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
    await Plotly.react(this.element, traces, this.layout(panels, look, narrow), CONFIG);
    this.placeCursor();
    for (const listener of this.drawnListeners) listener(look);
  }

  layout(panels, look, narrow) {
    const heights = panels.map(heightOf);
    const total = heights.reduce((sum, height) => sum + height, 0) || 1;
    const layout = {
      height: total + this.margin.t + this.margin.b,
      margin: { ...this.margin, autoexpand: false },
      paper_bgcolor: look.paper,
      plot_bgcolor: look.paper,
      font: { family: look.font, size: 12, color: look.ink },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: look.faint, activecolor: look.ink },
      hovermode: "x unified",
      hoverdistance: -1,
      hoverlabel: { bgcolor: look.paper, bordercolor: look.faint, font: { color: look.ink, size: 11 } },
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
      unifiedhovertitle: { text: "%{x:.4f} s" },
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
function heightOf({ rows }) {
  return TITLE_HEIGHT + (rows ? Math.max(rows.length, 1) * ROW_HEIGHT : LINE_HEIGHT);
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
