// The panels of the timeline, from top to bottom, and what is drawn in each.

const KIND_NAMES = { dropped: "dropped", lost: "declared lost", retransmission: "sent again", timeout: "time-out" };
const KIND_SYMBOLS = { dropped: "x-thin", lost: "triangle-down-open", retransmission: "line-ns", timeout: "diamond" };
// Where each kind is in its row, from half a row above the middle to half a row below.
const KIND_PLACES = { dropped: -0.33, lost: -0.12, retransmission: 0.1, timeout: 0.32 };
const WAIT = "wait";
// The part of a row that is filled when something holds all of the time.
const ROW_FILL = 0.84;

const LINE_PANELS = [
  { key: "throughput", name: "Throughput", title: "Throughput", unit: "kbit/s", channels: ["throughput"], digits: 0 },
  { key: "cwnd", name: "Window, ssthresh", title: "Congestion window, and ssthresh as a thin line", unit: "KiB", channels: ["cwnd", "ssthresh"], digits: 1 },
  { key: "outstanding", name: "Outstanding", title: "Outstanding", unit: "KiB", channels: ["outstanding"], digits: 1 },
  { key: "srtt", name: "Round-trip time", title: "Smoothed round-trip time", unit: "ms", channels: ["srtt"], digits: 1 },
  { key: "queue", name: "Queue", title: "Queue of the path's links", unit: "packets", channels: ["queue"], digits: 0 },
];
const ROW_PANELS = [
  { key: "events", name: "Losses", title: "Losses, retransmissions, time-outs" },
  { key: "blocked", name: "Blocking", title: "Receive-buffer blocking, by the path of the hole" },
  { key: "decisions", name: "New data", title: "Where new data went" },
];
const PANELS = [...LINE_PANELS, ...ROW_PANELS];

const escapeText = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// Whether a line, events or spans are among what is to be seen.
function isShown(item, shown) {
  const tracks = item.tracks ?? [item.track];
  const paths = item.paths ?? [item.path];
  return tracks.some((track) => shown.tracks.has(track)) && paths.some((path) => path === null || shown.paths.has(path));
}

function lineName(timeline, item, shown) {
  const track = (item.tracks ?? [item.track]).find((index) => shown.tracks.has(index));
  const what = item.link && !item.paths.includes(item.link) ? item.link : item.paths.join(", ");
  const name = shown.tracks.size > 1 ? `${timeline.tracks[track].label} ${what}` : what;
  return escapeText(item.channel === "ssthresh" ? `${name} ssthresh` : name);
}

function lineColour(timeline, item, shown, look) {
  const track = (item.tracks ?? [item.track]).find((index) => shown.tracks.has(index));
  const path = timeline.paths.indexOf(item.paths[0]);
  return shown.tracks.size > 1 ? look.trackColours[track] : look.pathColours[path];
}

// The lines of a panel, and the greatest value between the edges of the view.
function linePanel(panel, timeline, shown, view, look) {
  const lines = timeline.lines.filter((line) => panel.channels.includes(line.channel) && isShown(line, shown));
  let greatest = 0;
  const traces = lines.map((line) => {
    const points = stepView(line, view.start, view.end, view.bins);
    // ssthresh begins where no window gets: it must not flatten what matters.
    if (line.channel !== "ssthresh") {
      for (let i = 0; i < points.x.length; i += 1) {
        if (points.x[i] >= view.from && points.x[i] <= view.to && points.y[i] > greatest) greatest = points.y[i];
      }
    }
    const thin = line.channel === "ssthresh";
    return {
      ...points,
      type: "scatter",
      mode: "lines",
      name: lineName(timeline, line, shown),
      meta: { panel: panel.key, channel: line.channel, tracks: line.tracks, paths: line.paths },
      line: {
        shape: "hv",
        color: lineColour(timeline, line, shown, look),
        dash: dashOf(timeline.paths.indexOf(line.paths[0])),
        width: thin ? 0.8 : 1.6,
        simplify: true,
      },
      hovertemplate: `%{y:,.${panel.digits}f} ${panel.unit}`,
    };
  });
  return { traces, range: [0, greatest > 0 ? greatest * 1.08 : 1] };
}

// A row for each path of each sender.
function eventRows(timeline, shown) {
  const rows = [];
  for (const track of shown.tracks) {
    const own = timeline.tracks[track];
    const named = own.paths.filter((path) => shown.paths.has(path));
    const nameless = timeline.events.some((events) => events.track === track && events.path === null);
    for (const path of nameless ? [...named, null] : named) {
      const where = path ?? "no path";
      rows.push({ track, path, labels: shown.tracks.size > 1 ? [own.label, where] : [where] });
    }
  }
  return rows;
}

function eventPanel(timeline, shown, view, look) {
  const rows = eventRows(timeline, shown);
  const rowOf = (item) => rows.findIndex((row) => row.track === item.track && row.path === item.path);
  const states = timeline.spans.filter((spans) => spans.kind === "state" && rowOf(spans) >= 0);
  const traces = states.map((spans) => statePart(spans, rowOf(spans), view, look));
  for (const events of timeline.events.filter((item) => rowOf(item) >= 0)) {
    const { positions, numbers } = eventView(events, view.start, view.end, view.bins);
    traces.push({
      type: "scatter",
      mode: "markers",
      name: escapeText(`${rows[rowOf(events)].labels.join(" ")} ${KIND_NAMES[events.kind]}`),
      meta: { panel: "events", kind: events.kind, tracks: [events.track], paths: [events.path] },
      x: positions.map((position) => events.times[position]),
      y: positions.map(() => rowOf(events) + KIND_PLACES[events.kind]),
      text: positions.map((position, i) => eventText(events, position, numbers[i])),
      marker: {
        symbol: KIND_SYMBOLS[events.kind],
        size: events.kind === "timeout" ? 9 : 6,
        color: look.kindColours[events.kind],
        line: { width: 1.3, color: look.kindColours[events.kind] },
      },
      hovertemplate: "%{text}",
    });
  }
  // Without any trace a panel would have no axes.
  if (traces.length === 0) traces.push({ x: [view.from], y: [0], type: "scatter", mode: "lines", hoverinfo: "skip", meta: { panel: "base" } });
  return { traces, rows, range: [rows.length - 0.5, -0.5] };
}

function eventText(events, position, number) {
  const detail = events.words[events.details[position]];
  const cause = detail && events.kind !== "retransmission" ? `, ${detail}` : "";
  const tsn = events.tsns[position] ? `, TSN ${events.tsns[position]}` : "";
  const others = number > 1 ? ` (and ${number - 1} more here)` : "";
  return escapeText(`${events.times[position].toFixed(6)} s${cause}${tsn}${others}`);
}

// A state as a broad pale line, with a point in each bin so that it can be pointed at anywhere.
function statePart(spans, row, view, look) {
  const width = (view.end - view.start) / view.bins;
  const x = [];
  const y = [];
  for (let span = 0; span < spans.starts.length; span += 1) {
    const end = Math.min(spans.ends[span], view.end);
    for (let time = Math.max(spans.starts[span], view.start); time < end; time += width) {
      x.push(time);
      y.push(row);
    }
    if (end > view.start && x.length > 0) {
      x.push(end, end);
      y.push(row, null);
    }
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

// One row for each sender, filled as far as its window was closed, by the path of the hole.
function blockedPanel(timeline, shown, view, look) {
  const rows = [...shown.tracks].map((track) => ({ track, labels: [timeline.tracks[track].label] }));
  const traces = rows.flatMap(({ track }, row) => {
    const all = timeline.spans.filter((spans) => spans.kind === "blocked" && spans.track === track && isShown(spans, shown));
    const x = binStarts(view.start, view.end, view.bins);
    const parts = all.map((spans) => coverage(spans, view.start, view.end, view.bins));
    const texts = parts.map((part, index) =>
      Array.from(part, (share) => (share > 0 ? `${(share * 100).toFixed(0)} % by ${all[index].path ?? "nothing outstanding"}` : "")),
    );
    const meta = (index) => ({ panel: "blocked", tracks: [track], paths: [all[index].path] });
    return stacked(row, x, parts, all.map((spans) => spans.path), texts, meta, timeline, look);
  });
  return { traces, rows, range: [rows.length - 0.5, -0.5] };
}

// One row for each sender, divided as its decisions about new data were.
function decisionPanel(timeline, shown, view, look) {
  const rows = [...shown.tracks].map((track) => ({ track, labels: [timeline.tracks[track].label] }));
  const traces = rows.flatMap(({ track }, row) => {
    const shares = timeline.shares.find((item) => item.track === track);
    const bins = shares.counts.length / shares.ways.length;
    const total = Array.from({ length: bins }, (_, bin) => shares.ways.reduce((sum, _way, way) => sum + shares.counts[way * bins + bin], 0));
    const ways = shares.ways.map((name, way) => ({ name, way })).filter(({ name }) => name === WAIT || shown.paths.has(name));
    const parts = ways.map(({ way }) => total.map((sum, bin) => (sum > 0 ? shares.counts[way * bins + bin] / sum : 0)));
    const texts = ways.map(({ way }, index) => parts[index].map((part, bin) => (part > 0 ? shareText(shares, way, bin, part, bins) : "")));
    const x = [...total.map((_, bin) => bin * shares.bin_s), timeline.tracks[track].end_s];
    for (const part of parts) part.push(part[bins - 1]);
    const meta = (index) => ({ panel: "decisions", tracks: [track], paths: [ways[index].name] });
    return stacked(row, x, parts, ways.map(({ name }) => name), texts, meta, timeline, look);
  });
  return { traces, rows, range: [rows.length - 0.5, -0.5] };
}

function shareText(shares, way, bin, part, bins) {
  const spell = (pairs, join) => {
    const words = [];
    for (let i = 0; i < pairs.length; i += 2) words.push(`${shares.words[pairs[i]]}${join}${pairs[i + 1]}`);
    return words.join(", ");
  };
  const refused = spell(shares.refused[way][bin], " ×");
  return escapeText(
    `${(part * 100).toFixed(0)} %, ${shares.counts[way * bins + bin]} decisions: ${spell(shares.reasons[way][bin], " ×")}` +
      (refused ? `; not taken: ${refused}` : ""),
  );
}

const binStarts = (from, to, bins) => Array.from({ length: bins }, (_, bin) => from + (bin * (to - from)) / bins);

// Parts of a row on top of each other, from its lower edge up; rows are counted downwards.
function stacked(row, x, parts, names, texts, meta, timeline, look) {
  const bottom = row + ROW_FILL / 2;
  const height = new Float64Array(x.length).fill(bottom);
  const base = { x, y: Array.from(height), type: "scatter", mode: "lines", line: { width: 0, shape: "hv" }, hoverinfo: "skip", meta: { panel: "base" } };
  const traces = parts.map((part, index) => {
    for (let i = 0; i < height.length; i += 1) height[i] -= part[i] * ROW_FILL;
    const path = timeline.paths.indexOf(names[index]);
    const colour = path >= 0 ? look.pathColours[path] : look.faint;
    return {
      x,
      y: Array.from(height),
      type: "scatter",
      mode: "lines",
      name: escapeText(names[index] ?? "no path"),
      meta: meta(index),
      fill: "tonexty",
      fillcolor: withAlpha(colour, path >= 0 ? 0.7 : 0.2),
      fillpattern: { shape: path >= 0 ? patternOf(path) : "", bgcolor: withAlpha(colour, 0.7), fgcolor: look.paper, size: 6, solidity: 0.2 },
      line: { width: 0, color: colour, shape: "hv" },
      text: texts[index],
      hovertemplate: "%{text}",
    };
  });
  return [base, ...traces];
}

function panelContent(panel, timeline, shown, view, look) {
  if (panel.channels) return linePanel(panel, timeline, shown, view, look);
  if (panel.key === "events") return eventPanel(timeline, shown, view, look);
  if (panel.key === "blocked") return blockedPanel(timeline, shown, view, look);
  return decisionPanel(timeline, shown, view, look);
}
