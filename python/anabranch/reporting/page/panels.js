// The panels of the timeline, from top to bottom, and those among them that show values over time.

const LINE_PANELS = [
  { key: "throughput", name: "Throughput", title: "Throughput", unit: "kbit/s", digits: 0, channels: ["throughput", "received"] },
  {
    key: "cwnd",
    name: "Window, ssthresh",
    title: "Congestion window, and ssthresh as a thin line",
    unit: "KiB",
    digits: 1,
    channels: ["cwnd", "ssthresh"],
  },
  { key: "outstanding", name: "Outstanding", title: "Outstanding", unit: "KiB", digits: 1, channels: ["outstanding"] },
  { key: "srtt", name: "Round-trip time", title: "Smoothed round trip", unit: "ms", digits: 1, channels: ["srtt"] },
  { key: "queue", name: "Queue", title: "Queue of the path's links", unit: "packets", digits: 0, channels: ["queue"] },
];
const ROW_PANELS = [
  { key: "events", name: "Losses", title: "Losses, retransmissions, time-outs" },
  { key: "blocked", name: "Blocking", title: "Receive-buffer blocking, by the path of the hole" },
  { key: "decisions", name: "New data", title: "Where new data went" },
];
const PANELS = [...LINE_PANELS, ...ROW_PANELS];

// The panels that a timeline has anything for: real sockets know of no queues, and QUIC has no such blocking.
function panelsOf(timeline) {
  const hasLine = (channels) => timeline.lines.some((line) => channels.includes(line.channel));
  const hasBlocking = timeline.shares.length > 0 || timeline.spans.some(({ kind }) => kind === "blocked");
  const has = { events: true, blocked: hasBlocking, decisions: timeline.shares.length > 0 };
  return PANELS.filter(({ key, channels }) => (channels ? hasLine(channels) : has[key]));
}

// Channels that are drawn thin beside the one that a panel is about.
const THIN = ["ssthresh", "received"];

const escapeText = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

// Lines and queues belong to several senders or paths, everything else to one.
const tracksOf = (item) => item.tracks ?? [item.track];
const pathsOf = (item) => item.paths ?? [item.path];

// Whether something is among what is to be seen. What has no path is part of every path.
function isShown(item, shown) {
  const ofTrack = tracksOf(item).some((track) => shown.tracks.has(track));
  return ofTrack && pathsOf(item).some((path) => path === null || shown.paths.has(path));
}

const firstTrack = (item, shown) => tracksOf(item).find((track) => shown.tracks.has(track));

function lineName(timeline, line, shown) {
  const what = line.link && !line.paths.includes(line.link) ? line.link : line.paths.join(", ");
  const name = shown.tracks.size > 1 ? `${timeline.tracks[firstTrack(line, shown)].label} ${what}` : what;
  return THIN.includes(line.channel) ? `${name} ${line.channel}` : name;
}

// A run alone is coloured by path, several by run.
function lineColour(timeline, item, shown, look) {
  if (shown.tracks.size > 1) return look.trackColours[firstTrack(item, shown)];
  return look.pathColours[timeline.paths.indexOf(pathsOf(item)[0])];
}

// The traces of a panel, and the range of its axis: from zero to the greatest value in view.
function linePanel(panel, timeline, shown, view, look) {
  const lines = timeline.lines.filter((line) => panel.channels.includes(line.channel) && isShown(line, shown));
  let greatest = 0;
  const traces = lines.map((line) => {
    const points = stepView(line, view.start, view.end, view.bins);
    // ssthresh begins where no window gets: it must not flatten what matters.
    if (line.channel !== "ssthresh") greatest = Math.max(greatest, greatestBetween(points, view.from, view.to));
    return lineTrace(panel, line, points, timeline, shown, look);
  });
  // What is drawn last lies on top.
  return { traces: traces.reverse(), range: [0, greatest > 0 ? greatest * 1.08 : 1] };
}

function greatestBetween({ x, y }, from, to) {
  let greatest = 0;
  for (let i = 0; i < x.length; i += 1) if (x[i] >= from && x[i] <= to && y[i] > greatest) greatest = y[i];
  return greatest;
}

function lineTrace(panel, line, points, timeline, shown, look) {
  return {
    ...points,
    type: "scatter",
    mode: "lines",
    meta: { panel: panel.key, channel: line.channel, tracks: line.tracks, paths: line.paths },
    line: {
      shape: "hv",
      color: lineColour(timeline, line, shown, look),
      dash: dashOf(timeline.paths.indexOf(line.paths[0])),
      width: THIN.includes(line.channel) ? 0.8 : 1.6,
    },
  };
}

// Without any trace a panel would have no axes.
function panelContent(panel, timeline, shown, view, look) {
  const content = contentOf(panel, timeline, shown, view, look);
  const nothing = { x: [view.from], y: [0], mode: "lines", meta: { panel: "nothing" } };
  return { ...content, traces: content.traces.length > 0 ? content.traces : [nothing] };
}

function contentOf(panel, timeline, shown, view, look) {
  if (panel.channels) return linePanel(panel, timeline, shown, view, look);
  if (panel.key === "events") return eventPanel(timeline, shown, view, look);
  if (panel.key === "blocked") return blockedPanel(timeline, shown, view, look);
  return decisionPanel(timeline, shown, view, look);
}

// What the signs and colours of a panel of rows mean, as Plotly's text.
function panelKey(panel, timeline, shown, look) {
  const part = (sign, colour, text) => `<span style="color:${colour}">${sign}</span> ${escapeText(text)}`;
  if (panel.channels) return [];
  if (panel.key === "events") {
    return Object.entries(KINDS).map(([kind, { sign, name }]) => part(sign, look.kindColours[kind], name));
  }
  const paths = timeline.paths.filter((path) => shown.paths.has(path));
  const keys = paths.map((path) => part("■", look.pathColours[timeline.paths.indexOf(path)], path));
  return panel.key === "decisions" ? [...keys, part("■", look.grid, "wait")] : keys;
}
