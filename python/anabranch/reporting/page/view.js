// What of the data can be seen between two moments: a few points for each pixel, chosen anew whenever the view changes.

// The position of the last of these times that is not after `time`; -1 if none is.
function lastAt(times, time) {
  let low = 0;
  let high = times.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (times[middle] <= time) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

// The position of the last of these times that is before `time`; -1 if none is.
function lastBefore(times, time) {
  let position = lastAt(times, time);
  while (position >= 0 && times[position] >= time) position -= 1;
  return position;
}

// A line that holds each value until the next, as points of steps. Each of `bins` begins with the value that holds
// there, and has the least and the greatest value within it where they happen: no peak is lost, and what a point says
// was so at its time.
function stepView(line, from, to, bins) {
  const { times, values } = line;
  const x = [];
  const y = [];
  if (times.length === 0) return { x, y };
  const start = Math.max(from, times[0]);
  const end = Math.min(to, line.end_s);
  const width = (to - from) / bins;
  let next = lastAt(times, start) + 1;
  for (let bin = Math.floor((start - from) / width); from + bin * width < end; bin += 1) {
    const begin = Math.max(from + bin * width, start);
    const finish = Math.min(from + (bin + 1) * width, end);
    x.push(begin);
    y.push(values[next - 1]);
    let least = -1;
    let greatest = -1;
    for (; next < times.length && times[next] <= finish; next += 1) {
      if (least < 0 || values[next] < values[least]) least = next;
      if (greatest < 0 || values[next] > values[greatest]) greatest = next;
    }
    for (const position of least < greatest ? [least, greatest] : [greatest, least]) {
      if (position >= 0 && times[position] > x[x.length - 1]) {
        x.push(times[position]);
        y.push(values[position]);
      }
    }
  }
  if (end >= start && (x.length === 0 || x[x.length - 1] < end)) {
    x.push(end);
    y.push(values[lastAt(times, end)]);
  }
  return { x, y };
}

// Which part of each of `bins` the spans cover, from 0 to 1. Spans do not overlap.
function coverage(spans, from, to, bins) {
  const width = (to - from) / bins;
  const covered = new Float64Array(bins);
  let span = Math.max(lastAt(spans.ends, from), 0);
  for (; span < spans.starts.length && spans.starts[span] < to; span += 1) {
    const start = Math.max(spans.starts[span], from);
    const end = Math.min(spans.ends[span], to);
    if (end <= start) continue;
    const last = Math.min(Math.floor((end - from) / width), bins - 1);
    for (let bin = Math.min(Math.floor((start - from) / width), bins - 1); bin <= last; bin += 1) {
      const begin = from + bin * width;
      covered[bin] += Math.max(Math.min(end, begin + width) - Math.max(start, begin), 0) / width;
    }
  }
  return covered;
}

// The positions of the events between two moments, one for each of `bins` at the most.
function eventView(events, from, to, bins) {
  const width = (to - from) / bins;
  const positions = [];
  let bin = -1;
  for (let i = Math.max(lastAt(events.times, from), 0); i < events.times.length && events.times[i] <= to; i += 1) {
    if (events.times[i] < from) continue;
    const own = Math.floor((events.times[i] - from) / width);
    if (own !== bin) positions.push(i);
    bin = own;
  }
  return positions;
}
