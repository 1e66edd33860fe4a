// The timeline's data: what the page carries as Base64 becomes typed arrays, times in seconds.

function decodeBytes(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes.buffer;
}

// Arrays in the page are little-endian, as every machine that runs a browser today is.
const decodeValues = (base64) => new Float32Array(decodeBytes(base64));
const decodeCounts = (base64) => new Uint32Array(decodeBytes(base64));
const decodeTimes = (base64, tick_s) => Float64Array.from(decodeCounts(base64), (ticks) => ticks * tick_s);

function decodeTimeline(content) {
  const times = (base64) => decodeTimes(base64, content.tick_s);
  return {
    ...content,
    tracks: content.tracks.map((track) => ({ ...track, label: track.names.join(": ") })),
    lines: content.lines.map((line) => ({
      ...line,
      times: times(line.times),
      values: decodeValues(line.values),
      end_s: Math.max(...line.tracks.map((track) => content.tracks[track].end_s)),
    })),
    events: content.events.map((events) => ({
      ...events,
      times: times(events.times),
      // Time-outs are about no chunk.
      tsns: events.tsns === null ? null : decodeCounts(events.tsns),
      details: new Uint8Array(decodeBytes(events.details)),
    })),
    spans: content.spans.map((spans) => ({ ...spans, starts: times(spans.starts), ends: times(spans.ends) })),
    shares: content.shares.map(decodeShares),
  };
}

// Decisions of a sender in bins: `counts` has an array for each way that they went, `totals` all ways together.
function decodeShares(shares) {
  const all = decodeCounts(shares.counts);
  const bins = all.length / shares.ways.length;
  const counts = shares.ways.map((_, way) => all.subarray(way * bins, (way + 1) * bins));
  const totals = Array.from({ length: bins }, (_, bin) => counts.reduce((sum, of) => sum + of[bin], 0));
  return { ...shares, counts, totals };
}
