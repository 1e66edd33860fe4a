// The values of everything that is shown at the moment of the cursor, as a table, which is the legend too.

const readoutNumber = (value, digits) =>
  value.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits, signDisplay: "negative" });

// What a line says at a moment; null before its first value and after the end of its run.
function valueAt(line, time) {
  const position = lastAt(line.times, time);
  return position < 0 || time > line.end_s ? null : line.values[position];
}

const spanAt = (spans, time) => {
  const position = lastAt(spans.starts, time);
  return position >= 0 && time < spans.ends[position];
};

const READOUT_COLUMNS = [
  { title: "throughput", unit: "kbit/s", channel: "throughput", digits: 0 },
  { title: "received", unit: "kbit/s", channel: "received", digits: 0 },
  { title: "cwnd", unit: "KiB", channel: "cwnd", digits: 1 },
  { title: "ssthresh", unit: "KiB", channel: "ssthresh", digits: 1 },
  { title: "outstanding", unit: "KiB", channel: "outstanding", digits: 1 },
  { title: "srtt", unit: "ms", channel: "srtt", digits: 1 },
  { title: "queue", unit: "packets", channel: "queue", digits: 0 },
];

class Readout {
  constructor(table, chart) {
    this.table = table;
    this.chart = chart;
    // Logs of QUIC have no scheduler's decisions, no states of paths and no window that closes.
    this.hasDecisions = chart.timeline.shares.length > 0;
    chart.drawnListeners.push((look) => this.build(look));
    chart.cursorListeners.push(() => this.update());
  }

  build(look) {
    const { timeline, shown } = this.chart;
    const columns = READOUT_COLUMNS.filter(({ channel }) => timeline.lines.some((line) => line.channel === channel));
    const head = this.table.tHead.rows[0];
    head.replaceChildren(cell("th", "Path"), ...columns.map(({ title, unit }) => unitCell(title, unit)));
    if (this.hasDecisions) head.append(cell("th", "state"), unitCell("new data", "%"), cell("th", "peer's window"));
    this.rows = [];
    for (const track of shown.tracks) {
      for (const path of timeline.tracks[track].paths.filter((name) => shown.paths.has(name))) {
        this.rows.push(this.row(track, path, columns, look));
      }
    }
    this.table.tBodies[0].replaceChildren(...this.rows.map(({ element }) => element));
    this.update();
  }

  row(track, path, columns, look) {
    const { timeline, shown } = this.chart;
    const label = shown.tracks.size > 1 ? `${timeline.tracks[track].label} ${path}` : path;
    const name = cell("th", label);
    name.scope = "row";
    const drawn = { tracks: [track], paths: [path] };
    name.prepend(lineSample(lineColour(timeline, drawn, shown, look), dashOf(timeline.paths.indexOf(path))));
    const element = document.createElement("tr");
    const values = columns.map((column) => {
      const lines = timeline.lines.filter(
        (line) => line.channel === column.channel && line.tracks.includes(track) && line.paths.includes(path),
      );
      return { ...column, lines, element: cell("td", "") };
    });
    const of = (kind) => timeline.spans.filter((spans) => spans.kind === kind && spans.track === track);
    const row = {
      ...{ element, track, path, values, blocked: of("blocked") },
      states: of("state").filter((spans) => spans.path === path),
      ...{ state: cell("td", ""), share: cell("td", ""), window: cell("td", "") },
    };
    element.append(name, ...values.map((value) => value.element));
    if (this.hasDecisions) element.append(row.state, row.share, row.window);
    return row;
  }

  update() {
    const time = this.chart.cursor;
    this.table.caption.querySelector("output").textContent = `${time.toFixed(4)} s`;
    for (const row of this.rows) {
      for (const value of row.values) {
        const known = value.lines.map((line) => valueAt(line, time)).filter((each) => each !== null);
        value.element.textContent = known.map((each) => readoutNumber(each, value.digits)).join(" + ") || "–";
      }
      const state = row.states.find((spans) => spanAt(spans, time));
      row.state.textContent = state ? state.state : "Active";
      const closed = row.blocked.find((spans) => spanAt(spans, time));
      row.window.textContent = closed ? `closed${closed.path ? ` by ${closed.path}` : ""}` : "open";
      row.share.textContent = this.share(row, time);
    }
  }

  share(row, time) {
    const shares = this.chart.timeline.shares.find((item) => item.track === row.track);
    if (!shares) return "–";
    const bin = Math.min(Math.floor(time / shares.bin_s), shares.totals.length - 1);
    const total = shares.totals[bin];
    return total > 0 ? readoutNumber((shares.counts[shares.ways.indexOf(row.path)][bin] / total) * 100, 0) : "–";
  }
}

function cell(kind, text) {
  const element = document.createElement(kind);
  element.textContent = text;
  return element;
}

function unitCell(title, unit) {
  const element = cell("th", title);
  element.scope = "col";
  element.append(document.createElement("br"), cell("small", unit));
  return element;
}

// A piece of a line as the chart draws it.
function lineSample(colour, dash) {
  const namespace = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(namespace, "svg");
  const size = { class: "sample", width: 30, height: 10, "aria-hidden": "true" };
  for (const [name, value] of Object.entries(size)) svg.setAttribute(name, value);
  const line = document.createElementNS(namespace, "line");
  const attributes = { x1: 0, x2: 30, y1: 5, y2: 5, stroke: colour, "stroke-width": 2.4 };
  if (dash !== "solid") attributes["stroke-dasharray"] = dash.replaceAll("px", "");
  for (const [name, value] of Object.entries(attributes)) line.setAttribute(name, value);
  svg.append(line);
  return svg;
}
