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
    ...events.map((item) => eventTrace(item, rowOf(item), rows[rowOf(item)].labels.join(" "), view, look)),
  ];
  return { traces, rows, range: [rows.length - 0.5, -0.5] };
}

function eventTrace(events, row, label, view, look) {
  const { positions, numbers } = eventView(events, view.start, view.end, view.bins);
  const { name, symbol, place, size } = KINDS[events.kind];
  const color = look.kindColours[events.kind];
  return {
    type: "scatter",
    mode: "markers",
    name: escapeText(`${label} ${name}`),
    meta: { panel: "events", kind: events.kind, tracks: [events.track], paths: [events.path] },
    x: positions.map((position) => events.times[position]),
    y: positions.map(() => row + place),
    text: positions.map((position, i) => eventText(events, position, numbers[i])),
    marker: { symbol, size, color, line: { width: 1.3, color } },
    hovertemplate: "%{text}",
  };
}

function eventText(events, position, number) {
  const cause = events.words[events.details[position]];
  const tsn = events.tsns[position];
  const others = number > 1 ? ` (and ${number - 1} more here)` : "";
  const parts = [`${events.times[position].toFixed(6)} s`, cause, tsn ? `TSN ${tsn}` : ""];
  return escapeText(parts.filter((part) => part).join(", ") + others);
}

// A state as a broad pale line, with a point in each bin so that it can be pointed at anywhere.
function stateTrace(spans, row, view, look) {
  const width = (view.end - view.start) / view.bins;
  const x = [];
  const y = [];
  for (let span = 0; span < spans.starts.length; span += 1) {
    const start = Math.max(spans.starts[span], view.start);
    const end = Math.min(spans.ends[span], view.end);
    if (start >= end) continue;
    for (let time = start; time < end; time += width) {
      x.push(time);
      y.push(row);
    }
    x.push(end, end);
    y.push(row, null);
  }
  return {
    x,
    y,
    type: "scatter",
    mode: "lines",
    name: escapeText(spans.path),
    meta: { panel: "events", kind: "state", tracks: [spans.track], paths: [spans.path] },
    line: { width: 14, color: withAlpha(look.ink, 0.14) },
    hovertemplate: escapeText(spans.state),
  };
}
