// The panels with a row for each sender, which is filled in parts: blocking, and where new data went.

const WAIT = "wait";
// The part of a row's height that is filled when something holds all of the time.
const ROW_FILL = 0.84;

function rowPanel(timeline, shown, tracesOfRow) {
  const rows = [...shown.tracks].map((track) => ({ track, labels: timeline.tracks[track].names }));
  return { traces: rows.flatMap(tracesOfRow), rows, range: [rows.length - 0.5, -0.5] };
}

// How much of the time the peer's window was closed, by the path of the hole.
function blockedPanel(timeline, shown, view, look) {
  const width = (view.end - view.start) / view.bins;
  const x = Array.from({ length: view.bins }, (_, bin) => view.start + bin * width);
  return rowPanel(timeline, shown, ({ track }, row) => {
    const own = timeline.spans.filter((spans) => spans.kind === "blocked" && spans.track === track);
    const parts = own.filter((spans) => isShown(spans, shown)).map((spans) => {
      return { path: spans.path, heights: coverage(spans, view.start, view.end, view.bins) };
    });
    return stacked("blocked", track, row, x, parts, timeline, look);
  });
}

// How decisions about new data divided over the paths, and waiting.
function decisionPanel(timeline, shown, view, look) {
  return rowPanel(timeline, shown, ({ track }, row) => {
    const shares = timeline.shares.find((item) => item.track === track);
    if (!shares) return [];
    const x = [...shares.totals.map((_, bin) => bin * shares.bin_s), timeline.tracks[track].end_s];
    const ways = shares.ways.map((name, way) => ({ name, way }));
    const parts = ways.filter(({ name }) => name === WAIT || shown.paths.has(name)).map(({ name, way }) => {
      const heights = shares.totals.map((total, bin) => (total > 0 ? shares.counts[way][bin] / total : 0));
      // The last bin lasts until the end.
      return { path: name, heights: [...heights, heights.at(-1)] };
    });
    return stacked("decisions", track, row, x, parts, timeline, look);
  });
}

const percent = (part) => `${(part * 100).toFixed(0)} %`;

// How much of new data went one way in a bin, and by which rules.
function shareText(shares, way, bin) {
  const count = shares.counts[way][bin];
  const spell = (pairs) => {
    const words = [];
    for (let i = 0; i < pairs.length; i += 2) words.push(`${shares.words[pairs[i]]} ×${pairs[i + 1]}`);
    return words.join(", ");
  };
  const refused = spell(shares.refused[way][bin]);
  const rules = spell(shares.reasons[way][bin]);
  const why = `${count} decision${count === 1 ? "" : "s"}${rules ? `: ${rules}` : ""}`;
  return `${percent(count / shares.totals[bin])}, ${why}${refused ? `; not taken: ${refused}` : ""}`;
}

// Parts of a row on top of each other, from its lower edge up.
function stacked(panel, track, row, x, parts, timeline, look) {
  const edge = new Float64Array(x.length).fill(row + ROW_FILL / 2);
  const common = { x, type: "scatter", mode: "lines", line: { width: 0, shape: "hv" } };
  const base = { ...common, y: Array.from(edge), meta: { panel: "base" } };
  const traces = parts.map(({ path, heights }) => {
    for (let i = 0; i < edge.length; i += 1) edge[i] -= heights[i] * ROW_FILL;
    return {
      ...common,
      ...fillOf(timeline.paths.indexOf(path), look),
      y: Array.from(edge),
      meta: { panel, tracks: [track], paths: [path] },
      fill: "tonexty",
    };
  });
  return [base, ...traces];
}

// Colour and pattern of a path's part; grey for what is no path's.
function fillOf(path, look) {
  if (path < 0) return { fillcolor: withAlpha(look.faint, 0.2) };
  const color = withAlpha(look.pathColours[path], 0.7);
  const pattern = { shape: patternOf(path), bgcolor: color, fgcolor: look.paper, size: 6, solidity: 0.2 };
  return { fillcolor: color, fillpattern: pattern };
}
