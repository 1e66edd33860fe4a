// Colours, dashes and patterns: paths differ in dash and pattern too, so that a page printed in grey can be read.

// Lengths of drawn and blank pieces by the place of a path, of which a scenario has eight at the most.
const DASHES = [
  ...["solid", "7px,3px", "2px,2px", "9px,3px,2px,3px"],
  ...["14px,4px", "9px,3px,2px,3px,2px,3px", "4px,6px", "1px,4px"],
];
const PATTERNS = ["", "/", ".", "x", "\\", "-", "|", "+"];
const dashOf = (path) => DASHES[path % DASHES.length];
const patternOf = (path) => PATTERNS[path % PATTERNS.length];

function channels(colour) {
  const number = parseInt(colour.trim().slice(1), 16);
  return [(number >> 16) & 255, (number >> 8) & 255, number & 255];
}

const toColour = (rgb) => `#${rgb.map((value) => Math.round(value).toString(16).padStart(2, "0")).join("")}`;

// Relative luminance and contrast as WCAG 2 defines them.
function luminance(colour) {
  const [r, g, b] = channels(colour).map((value) => {
    const part = value / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function contrast(one, other) {
  const [low, high] = [luminance(one), luminance(other)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

// The colour, drawn towards the ink until it stands out from the paper by so much.
function readable(colour, paper, ink, least = 3.2) {
  let drawn = colour;
  for (let part = 0.1; contrast(drawn, paper) < least && part <= 1; part += 0.1) {
    const [from, to] = [channels(colour), channels(ink)];
    drawn = toColour(from.map((value, i) => value + (to[i] - value) * part));
  }
  return drawn;
}

function withAlpha(colour, alpha) {
  return `rgba(${channels(colour).join(",")},${alpha})`;
}

function currentLook(timeline) {
  const style = getComputedStyle(document.documentElement);
  const variable = (name) => style.getPropertyValue(name).trim();
  const [paper, ink] = [variable("--paper"), variable("--ink")];
  return {
    paper,
    ink,
    faint: variable("--faint"),
    grid: variable("--grid"),
    loud: variable("--loud"),
    font: variable("--font"),
    pathColours: timeline.path_colours.map((colour) => readable(colour, paper, ink)),
    trackColours: timeline.tracks.map(({ colour }) => readable(colour, paper, ink)),
    kindColours: {
      dropped: variable("--faint"),
      lost: variable("--lost"),
      retransmission: variable("--again"),
      timeout: variable("--loud"),
    },
  };
}
