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

function withAlpha(colour, alpha) {
  return `rgba(${channels(colour).join(",")},${alpha})`;
}

function currentLook(timeline) {
  const style = getComputedStyle(document.documentElement);
  const variable = (name) => style.getPropertyValue(name).trim();
  const series = (colour) => variable(`--series-${colour.slice(1)}`);
  return {
    paper: variable("--paper"),
    ink: variable("--ink"),
    faint: variable("--faint"),
    grid: variable("--grid"),
    loud: variable("--loud"),
    font: variable("--font"),
    pathColours: timeline.path_colours.map(series),
    trackColours: timeline.tracks.map(({ colour }) => series(colour)),
    kindColours: {
      dropped: variable("--faint"),
      lost: variable("--lost"),
      retransmission: variable("--again"),
      timeout: variable("--loud"),
    },
  };
}
