// The panel of what happens at single moments: a row for each path of each sender, and in it a place for each kind.

// Places go from half a row above its middle to half a row below; rows are counted downwards.
const KINDS = {
  dropped: { name: "dropped", sign: "×", symbol: "x-thin", place: -0.33, size: 6 },
  lost: { name: "declared lost", sign: "▽", symbol: "triangle-down-open", place: -0.12, size: 6 },
  retransmission: { name: "sent again", sign: "|", symbol: "line-ns", place: 0.1, size: 6 },
  timeout: { name: "time-out", sign: "◆", symbol: "diamond", place: 0.32, size: 9 },
};

function eventRows(timeline, shown) {
  const rows = [];
  for (const track of shown.tracks) {
    const own = timeline.tracks[track];
    const named = own.paths.filter((path) => shown.paths.has(path));
    const nameless = timeline.events.some((events) => events.track === track && events.path === null);
    for (const path of nameless ? [...named, null] : named) {
      const where = path ?? "no path";
      rows.push({ track, path, labels: shown.tracks.size > 1 ? [...own.names, where] : [where] });
    }
  }
  return rows;
}

function eventPanel(timeline, shown, view, look) {
  const rows = eventRows(timeline, shown);
  const rowOf = (item) => rows.findIndex((row) => row.track === item.track && row.path === item.path);
  const states = timeline.spans.filter((spans) => spans.kind === "state" && rowOf(spans) >= 0);
  const events = timeline.events.filter((item) => rowOf(item) >= 0);
  const traces = [
    ...states.map((spans) => stateTrace(spans, rowOf(spans), view, look)),
    ...events.map((item) => eventTrace(item, rowOf(item), view, look)),
  ];
  return { traces, rows, range: [rows.length - 0.5, -0.5] };
}

function eventTrace(events, row, view, look) {
  const positions = eventView(events, view.start, view.end, view.bins);
  const { symbol, place, size } = KINDS[events.kind];
  const color = look.kindColours[events.kind];
  return {
    type: "scatter",
    mode: "markers",
    meta: { panel: "events", kind: events.kind, tracks: [events.track], paths: [events.path] },
    x: positions.map((position) => events.times[position]),
    y: positions.map(() => row + place),
    marker: { symbol, size, color, line: { width: 1.3, color } },
  };
}

// A state as a broad pale line.
function stateTrace(spans, row, view, look) {
  const x = [];
  const y = [];
  for (let span = 0; span < spans.starts.length; span += 1) {
    const start = Math.max(spans.starts[span], view.start);
    const end = Math.min(spans.ends[span], view.end);
    if (start >= end) continue;
    x.push(start, end, end);
    y.push(row, row, null);
  }
  return {
    x,
    y,
    type: "scatter",
    mode: "lines",
    meta: { panel: "events", kind: "state", tracks: [spans.track], paths: [spans.path] },
    line: { width: 14, color: withAlpha(look.ink, 0.14) },
  };
}
