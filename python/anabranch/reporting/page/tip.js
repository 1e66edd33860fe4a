// The label at the pointer: the values of the panel under it, with their units; no label where there are none.

// Events so many pixels away from the pointer, on either side, are under it.
const REACH_PX = 4;
const TIP_GAP_PX = 14;

class Tip {
  constructor(element, chart) {
    this.element = element;
    this.chart = chart;
    chart.pointedListeners.push(() => this.update());
    chart.drawnListeners.push((look) => {
      this.look = look;
      this.update();
    });
  }

  update() {
    const { chart, element } = this;
    const { pointed } = chart;
    const lines = pointed ? tipLines(pointed, chart, this.look) : [];
    element.hidden = lines.length === 0;
    if (element.hidden) return;
    const head = cell("b", `${pointed.time.toFixed(4)} s`);
    element.replaceChildren(head, ...lines.map(({ sample, text }) => {
      const line = cell("div", text);
      if (sample) line.prepend(sample);
      return line;
    }));
    this.place(pointed);
  }

  // Beside the pointer, on the side with more room.
  place({ x, y }) {
    const width = this.chart.element.clientWidth;
    const { style } = this.element;
    const isLeft = x > width / 2;
    style.left = isLeft ? "" : `${x + TIP_GAP_PX}px`;
    style.right = isLeft ? `${width - x + TIP_GAP_PX}px` : "";
    style.maxWidth = `${Math.max(isLeft ? x : width - x, width / 2) - 2 * TIP_GAP_PX}px`;
    style.top = `${y + TIP_GAP_PX}px`;
  }
}

// What a panel says under the pointer, as lines of text, each with a sample of what it is drawn with or none.
function tipLines(pointed, chart, look) {
  const { panel, time, row } = pointed;
  const { timeline, shown } = chart;
  const reach = REACH_PX * chart.secondsPerPixel();
  if (panel.channels) return lineTips(panel, time, timeline, shown, look);
  if (row === null) return [];
  const texts = {
    events: () => eventTips(row, time, reach, timeline),
    blocked: () => blockedTips(row, time, reach, timeline, shown),
    decisions: () => decisionTips(row, time, timeline, shown),
  }[panel.key]();
  return texts.map((text) => ({ text }));
}

function lineTips(panel, time, timeline, shown, look) {
  const lines = timeline.lines.filter((line) => panel.channels.includes(line.channel) && isShown(line, shown));
  return lines.flatMap((line) => {
    const value = valueAt(line, time);
    if (value === null) return [];
    const dash = dashOf(timeline.paths.indexOf(line.paths[0]));
    const sample = lineSample(lineColour(timeline, line, shown, look), dash);
    return [{ sample, text: `${lineName(timeline, line, shown)}: ${readoutNumber(value, panel.digits)} ${panel.unit}` }];
  });
}

function eventTips(row, time, reach, timeline) {
  const isHere = (item) => item.track === row.track && item.path === row.path;
  const state = timeline.spans.find((spans) => spans.kind === "state" && isHere(spans) && spanAt(spans, time));
  const events = timeline.events.filter(isHere).flatMap((each) => eventTip(each, time - reach, time + reach, timeline));
  const lines = state ? [`${state.state} ${spanText(state, time)}`, ...events] : events;
  return lines.length > 0 ? [row.labels.join(", "), ...lines] : [];
}

// The events of one kind between two moments; nothing if there are none.
function eventTip(events, from, to, timeline) {
  const first = lastBefore(events.times, from) + 1;
  const count = lastAt(events.times, to) + 1 - first;
  if (count <= 0) return [];
  const positions = Array.from({ length: count }, (_, i) => first + i);
  const { name } = KINDS[events.kind];
  // Of events that were thinned out there were more.
  const number = `${events.total > events.times.length ? "at least " : ""}${count}`;
  const when = `${events.times[first].toFixed(6)} s`;
  const head = count === 1 ? `${name} at ${when}` : `${name}: ${number} from ${when}`;
  return [[head, numbersText(events, positions, timeline), wordsText(events, positions)].filter(Boolean).join(", ")];
}

// TSNs, or what else numbers what was sent; nothing for events that are about none.
function numbersText(events, positions, timeline) {
  if (events.tsns === null) return "";
  const numbers = positions.map((position) => events.tsns[position]);
  const [least, greatest] = [numbers.reduce((a, b) => Math.min(a, b)), numbers.reduce((a, b) => Math.max(a, b))];
  const unit = timeline.tracks[events.track].numbered;
  return least === greatest ? `${unit} ${least}` : `${unit} ${least} to ${greatest}`;
}

function wordsText(events, positions) {
  const counts = new Map();
  for (const position of positions) {
    const word = events.words[events.details[position]];
    counts.set(word, (counts.get(word) ?? 0) + 1);
  }
  const several = counts.size > 1;
  return [...counts].filter(([word]) => word).map(([word, count]) => (several ? `${word} ×${count}` : word)).join(", ");
}

const spanText = (spans, time) => {
  const position = lastAt(spans.starts, time);
  return `from ${spans.starts[position].toFixed(6)} s to ${spans.ends[position].toFixed(6)} s`;
};

function blockedTips(row, time, reach, timeline, shown) {
  const own = timeline.spans.filter((spans) => spans.kind === "blocked" && spans.track === row.track);
  const lines = own.filter((spans) => isShown(spans, shown)).flatMap((spans) => {
    const by = spans.path ? `hole on ${spans.path}` : "nothing outstanding";
    if (spanAt(spans, time)) return [`window closed ${spanText(spans, time)}, ${by}`];
    const [part] = coverage(spans, time - reach, time + reach, 1);
    return part > 0 ? [`window closed for ${percent(part)} of ${(2000 * reach).toPrecision(2)} ms, ${by}`] : [];
  });
  return withLabel(row, lines, shown);
}

function decisionTips(row, time, timeline, shown) {
  const shares = timeline.shares.find((item) => item.track === row.track);
  if (!shares) return [];
  const bin = Math.min(Math.floor(time / shares.bin_s), shares.totals.length - 1);
  if (time > timeline.tracks[row.track].end_s || shares.totals[bin] === 0) return [];
  const lines = shares.ways.flatMap((name, way) => {
    const count = shares.counts[way][bin];
    return count > 0 && (name === WAIT || shown.paths.has(name)) ? [`${name}: ${shareText(shares, way, bin)}`] : [];
  });
  return withLabel(row, lines, shown);
}

// Rows of several runs are told apart by their labels.
const withLabel = (row, lines, shown) =>
  lines.length > 0 && shown.tracks.size > 1 ? [row.labels.join(", "), ...lines] : lines;
