// Which point and seed of a sweep is shown, and how to add the traces of those that have none here.

// Stands for all points, or all seeds, that have traces.
const TRACED = "";

class RunChoice {
  constructor(element, timeline) {
    this.index = timeline.index;
    this.places = timeline.tracks.map(({ run }) => this.index.runs[run]);
    this.changedListeners = [];
    this.absent = element.querySelector(".absent");
    const { points, seeds } = this.index;
    this.point = this.list(element, "point", 0, points.map((_, point) => this.pointText(point)));
    this.seed = this.list(element, "seed", 2, seeds.map(String));
    element.querySelector(".pick").hidden = false;
  }

  // A list of what runs can differ in, whose position in a place is `part`; not shown where there is one only.
  list(element, name, part, texts) {
    const select = element.querySelector(`[name="${name}"]`);
    const traced = new Set(this.places.map((place) => place[part]));
    select.append(new Option("all with traces", TRACED));
    texts.forEach((text, at) => select.append(new Option(traced.has(at) ? text : `${text} (no traces here)`, at)));
    select.value = traced.size === 1 ? [...traced][0] : TRACED;
    select.parentElement.hidden = texts.length < 2;
    select.addEventListener("change", () => {
      for (const listener of this.changedListeners) listener();
    });
    return select;
  }

  pointText(point) {
    return this.index.keys.map((key, i) => `${key} = ${this.index.points[point][i]}`).join(", ");
  }

  has(track) {
    const [point, , seed] = this.places[track];
    return [[this.point, point], [this.seed, seed]].every(([{ value }, at]) => value === TRACED || Number(value) === at);
  }

  // The runs of the chosen point and seed that have no traces here, by their schemes. Of what is not chosen it is the
  // first, unless some of it has traces.
  missing() {
    const tracks = this.places.map((_, track) => track).filter((track) => this.has(track));
    const isWhole = [this.point, this.seed].every(({ value }) => value !== TRACED);
    if (tracks.length > 0 && !isWhole) return { point: 0, seed: 0, schemes: [] };
    const [point, seed] = [this.point, this.seed].map(({ value }) => Number(value));
    const traced = new Set(tracks.map((track) => this.places[track][1]));
    const schemes = this.index.schemes.map((_, scheme) => scheme).filter((scheme) => !traced.has(scheme));
    return { point, seed, schemes: schemes.filter((scheme) => this.isMade([point, scheme, seed])) };
  }

  isMade(place) {
    return this.index.made === null || this.index.made.some((other) => other.every((at, i) => at === place[i]));
  }

  // The words after which the report has the traces that are missing, beside those that it has as far as there is room.
  command({ point, seed, schemes }) {
    const { index } = this;
    const values = index.keys.map((key, i) => `${key}=${index.points[point][i]}`);
    const at = [...values, `seed=${index.seeds[seed]}`].join(",");
    const isAll = schemes.length > 1 && schemes.length === index.schemes.length;
    const names = isAll ? ["all"] : schemes.map((scheme) => index.schemes[scheme]);
    const added = names.flatMap((name) => ["--timeline", `${name}@${at}`]);
    const present = this.hasRoom(schemes) ? index.present : [];
    return [...index.command, ...present, ...added].map(quoted).join(" ");
  }

  hasRoom(schemes) {
    return Object.keys(this.index.runs).length + schemes.length <= this.index.most;
  }

  // Says what has no traces, and what to type.
  explain() {
    const missing = this.missing();
    this.absent.hidden = missing.schemes.length === 0;
    if (this.absent.hidden) return;
    const names = missing.schemes.map((scheme) => this.index.schemes[scheme]).join(", ");
    const where = [this.pointText(missing.point), `seed ${this.index.seeds[missing.seed]}`].filter(Boolean).join(", ");
    const how = this.hasRoom(missing.schemes)
      ? "To add them"
      : `To have them in place of those here, as a report has the traces of ${this.index.most} runs at the most`;
    const source = `${this.index.command.at(-1)} is the folder that this report was written from`;
    const [text, code] = this.absent.children;
    text.textContent = `No traces here of ${names} at ${where}. ${how}, where ${source}:`;
    code.textContent = this.command(missing);
  }
}

// A word as a shell takes it.
const quoted = (word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\"'\"'")}'`);
