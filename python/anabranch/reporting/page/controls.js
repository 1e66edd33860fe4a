// Check boxes for runs, paths and panels, buttons for the view, and the keys of the chart.

class Controls {
  constructor(element, chart) {
    this.element = element;
    this.chart = chart;
    this.samples = [];
    const { timeline, shown } = chart;
    this.choice = timeline.index ? new RunChoice(element, timeline) : null;
    this.group("tracks", timeline.tracks.map(({ label }, track) => [track, label]), shown.tracks);
    this.group("paths", timeline.paths.map((path) => [path, path]), shown.paths);
    this.group("panels", panelsOf(timeline).map(({ key, name }) => [key, name]), shown.panels);
    this.buttons();
    if (this.choice) {
      this.choice.changedListeners.push(() => this.pick());
      this.filter();
    }
    chart.element.addEventListener("keydown", (event) => this.key(event));
    chart.drawnListeners.push((look) => this.refresh(look));
  }

  // Shows the runs of the chosen point and seed: of the same schemes as before, or the first one.
  pick() {
    const { timeline, shown } = this.chart;
    const schemes = new Set([...shown.tracks].map((track) => timeline.tracks[track].scheme));
    const there = timeline.tracks.map((_, track) => track).filter((track) => this.choice.has(track));
    const same = there.filter((track) => schemes.has(timeline.tracks[track].scheme));
    document.getElementById("timeline-shown").hidden = there.length === 0;
    this.filter();
    return this.choose(shown.tracks, same.length > 0 ? same : there.slice(0, 1));
  }

  // Boxes of runs that are not of the chosen point and seed are out of sight.
  filter() {
    for (const { name, value, box } of this.samples) {
      if (name === "tracks") box.parentElement.hidden = !this.choice.has(value);
    }
    this.choice.explain();
  }

  group(name, items, chosen) {
    const fieldset = this.element.querySelector(`[data-group="${name}"]`);
    const boxes = items.map(([value, text]) => {
      const label = document.createElement("label");
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = chosen.has(value);
      box.addEventListener("change", () => this.toggle(chosen, items.map(([each]) => each), value, box.checked));
      const sample = document.createElement("span");
      label.append(box, sample, document.createTextNode(text));
      this.samples.push({ name, value, sample, box, chosen });
      return label;
    });
    fieldset.append(...boxes);
    if (items.length > 2 && name !== "panels") {
      const choose = (text, values) => {
        const button = cell("button", text);
        button.type = "button";
        button.addEventListener("click", () => this.choose(chosen, values()));
        return button;
      };
      const isThere = (value) => name !== "tracks" || !this.choice || this.choice.has(value);
      const there = () => items.map(([value]) => value).filter(isThere);
      fieldset.append(choose("all", there), choose("first only", () => there().slice(0, 1)));
    }
  }

  // What is chosen stays in the order of the page, whatever the order of clicks.
  toggle(chosen, all, value, checked) {
    this.choose(chosen, all.filter((each) => (each === value ? checked : chosen.has(each))));
  }

  choose(chosen, values) {
    chosen.clear();
    for (const value of values) chosen.add(value);
    return this.chart.draw();
  }

  buttons() {
    const { chart } = this;
    const does = {
      in: () => chart.zoom(0.5),
      out: () => chart.zoom(2),
      earlier: () => chart.move(-0.5),
      later: () => chart.move(0.5),
      all: () => chart.reset(),
    };
    for (const [name, action] of Object.entries(does)) {
      this.element.querySelector(`[data-do="${name}"]`).addEventListener("click", action);
    }
    [this.from, this.to] = ["from", "to"].map((name) => this.element.querySelector(`[name="${name}"]`));
    const jump = () => {
      const [from, to] = [this.from.valueAsNumber, this.to.valueAsNumber];
      if (to > from) chart.show(from, to);
    };
    for (const field of [this.from, this.to]) field.addEventListener("change", jump);
    for (const radio of this.element.querySelectorAll('[name="drag"]')) {
      radio.checked = radio.value === String(chart.drag);
      radio.addEventListener("change", () => {
        chart.drag = radio.value === "false" ? false : radio.value;
        chart.draw();
      });
    }
  }

  key(event) {
    const { chart } = this;
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const step = ((chart.to - chart.from) / 100) * (event.shiftKey ? 10 : 1);
    const does = {
      ArrowLeft: () => this.walk(chart.cursor - step),
      ArrowRight: () => this.walk(chart.cursor + step),
      Home: () => this.walk(0),
      End: () => this.walk(chart.timeline.end_s),
      "+": () => chart.zoom(0.5, chart.cursor),
      "-": () => chart.zoom(2, chart.cursor),
      0: () => chart.reset(),
    }[event.key];
    if (!does) return;
    event.preventDefault();
    does();
  }

  // Moves the cursor, and the view with it.
  walk(time) {
    const { chart } = this;
    chart.setCursor(time);
    const span = chart.to - chart.from;
    if (chart.cursor < chart.from) chart.show(chart.cursor, chart.cursor + span);
    if (chart.cursor > chart.to) chart.show(chart.cursor - span, chart.cursor);
  }

  refresh(look) {
    const { chart } = this;
    const { timeline, shown } = chart;
    for (const { name, value, sample, box, chosen } of this.samples) {
      box.checked = chosen.has(value);
      const several = shown.tracks.size > 1;
      if (name === "tracks") {
        sample.replaceChildren(...(several ? [lineSample(look.trackColours[value], "solid")] : []));
      }
      if (name === "paths") {
        const path = timeline.paths.indexOf(value);
        const colour = several ? look.ink : look.pathColours[path];
        sample.replaceChildren(lineSample(colour, dashOf(path)));
      }
    }
    const digits = Math.max(0, Math.ceil(-Math.log10((chart.to - chart.from) / 1000)));
    this.from.value = chart.from.toFixed(digits);
    this.to.value = chart.to.toFixed(digits);
    this.element.querySelector(".colours").textContent =
      shown.tracks.size > 1 ? "Colour is the run, dash the path." : "Colour and dash are the path.";
  }
}
