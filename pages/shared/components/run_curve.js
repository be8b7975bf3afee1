// Curves of a run that is still growing: panels with one x axis, redrawn in place at each tick. Above each panel stand
// its lines' names and, under the pointer or the arrow keys, their values at that step.
const SVG = "http://www.w3.org/2000/svg";
const LEFT = 52, RIGHT = 10, GAP = 10, BOTTOM = 40;

export default live(function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  const state = (root._state ??= { at: null });
  state.data = data;
  if (!state.observer) {
    root.tabIndex = 0;
    root.setAttribute("role", "img");
    state.observer = new ResizeObserver(() => draw(root, state));
    state.observer.observe(root);
    root.addEventListener("pointermove", (event) => point(root, state, event));
    root.addEventListener("pointerleave", () => show(root, state, null));
    root.addEventListener("blur", () => show(root, state, null));
    root.addEventListener("keydown", (event) => walk(root, state, event));
  }
  draw(root, state);
});

function draw(root, state) {
  const { data } = state;
  const width = Math.max(240, root.clientWidth);
  const all = data.panels.flatMap((panel) => panel.series);
  const last = Math.max(data.x_least, ...all.flatMap((series) => series.x));
  state.steps = [...new Set(all.flatMap((series) => series.x))].sort((a, b) => a - b);
  state.x = (step) => LEFT + ((width - LEFT - RIGHT) * step) / last;
  state.last = last;
  state.width = width;
  state.panels = data.panels.map((panel) => ({ ...panel, scale: scaleOf(panel) }));
  root.replaceChildren(...state.panels.map((panel, index) => drawPanel(panel, index, state)));
  describe(root, state);
  show(root, state, state.at);
}

function drawPanel(panel, index, state) {
  const isLast = index === state.panels.length - 1;
  const height = panel.height + GAP + (isLast ? BOTTOM : 6);
  const box = document.createElement("div");
  box.className = "panel";
  panel.values = [];
  const legend = document.createElement("div");
  legend.className = "legend";
  const title = document.createElement("span");
  title.className = "title";
  title.textContent = panel.title;
  legend.append(title);
  for (const series of panel.series) legend.append(entry(series, panel));
  const svg = make("svg", { width: state.width, height, "aria-hidden": "true" });
  const y = (value) => GAP + panel.height * (1 - panel.scale.at(value));
  for (const tick of panel.scale.ticks) {
    svg.append(make("line", { class: "grid", x1: LEFT, x2: state.width - RIGHT, y1: y(tick), y2: y(tick) }));
    svg.append(label(LEFT - 8, y(tick) + 4, panel.scale.text(tick), "end"));
  }
  if (isLast) drawSteps(svg, GAP + panel.height, state);
  for (const series of panel.series) drawLine(svg, series, state.x, y, panel);
  panel.cursor = make("line", { class: "cursor", y1: GAP, y2: GAP + panel.height, visibility: "hidden" });
  panel.dots = panel.series.map((series) => 
    colour(make("circle", { class: `dot ${series.style}`, r: 4, visibility: "hidden" }), series));
  panel.y = y;
  svg.append(panel.cursor, ...panel.dots);
  box.append(legend, svg);
  return box;
}

function entry(series, panel) {
  const item = document.createElement("span");
  item.className = "entry";
  const key = document.createElement("i");
  key.className = `key ${series.style}`;
  colour(key, series);
  const value = document.createElement("b");
  item.append(key, `${series.name} `, value);
  panel.values.push(value);
  return item;
}

function drawLine(svg, series, x, y, panel) {
  const points = series.x.map((step, i) => [step, series.y[i]]).filter(([, value]) => panel.scale.shows(value));
  const path = points.map(([step, value], i) => `${i ? "L" : "M"}${x(step).toFixed(1)},${y(value).toFixed(1)}`).join("");
  svg.append(colour(make("path", { class: `line ${series.style}`, d: path }), series));
  if (points.length >= 60 || series.style !== "main") return;
  for (const [step, value] of points)
    svg.append(colour(make("circle", { class: "mark", cx: x(step), cy: y(value), r: 2.5 }), series));
}

function colour(element, series) {
  if (series.colour) element.style.setProperty("--own", `light-dark(${series.colour.light}, ${series.colour.dark})`);
  return element;
}

function drawSteps(svg, bottom, state) {
  svg.append(make("line", { class: "axis", x1: LEFT, x2: state.width - RIGHT, y1: bottom, y2: bottom }));
  const ticks = evenTicks(0, state.last, state.width < 420 ? 4 : 7);
  for (const tick of ticks) svg.append(label(state.x(tick), bottom + 16, tick.toLocaleString("en"), "middle"));
  svg.append(label((LEFT + state.width - RIGHT) / 2, bottom + 34, state.data.x_title, "middle", "title"));
}

function scaleOf(panel) {
  const values = panel.series.flatMap((series) => series.y).filter((v) => Number.isFinite(v) && (!panel.log || v > 0));
  const shows = (v) => Number.isFinite(v) && (!panel.log || v > 0);
  if (panel.range) {
    const [low, high] = panel.range;
    return { at: (v) => (v - low) / (high - low), ticks: evenTicks(low, high, 3), text: three, shows };
  }
  if (!panel.log) {
    const high = 1.05 * Math.max(1e-9, ...values);
    return { at: (v) => v / high, ticks: evenTicks(0, high, 5), text: three, shows };
  }
  let low = values.length ? Math.min(...values) : 0.1;
  let high = values.length ? Math.max(...values) : 1;
  [low, high] = [low / 1.15, high * 1.15];
  const at = (v) => Math.log(v / low) / Math.log(high / low);
  const every = [];
  for (let decade = -9; decade < 7; decade++) for (const digit of [1, 2, 5]) every.push(digit * 10 ** decade);
  let ticks = every.filter((tick) => tick >= low && tick <= high);
  for (let most = 4; ticks.length < 3; most *= 2) ticks = evenTicks(low, high, most);
  const decades = ticks.filter((tick) => Number.isInteger(Math.round(Math.log10(tick) * 1e6) / 1e6));
  if (ticks.length > 6 && decades.length >= 3) ticks = decades;
  return { at, ticks, text: (tick) => String(Number(tick.toPrecision(3))), shows };
}

function evenTicks(low, high, most) {
  const rough = (high - low) / most || 1;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((size) => size >= rough * 0.999);
  const ticks = [];
  for (let tick = Math.ceil(low / step) * step; tick <= high * 1.0001; tick += step) ticks.push(tick);
  return ticks;
}

function point(root, state, event) {
  const x = event.clientX - root.getBoundingClientRect().left;
  let best = null;
  for (const step of state.steps) if (best === null || Math.abs(state.x(step) - x) < Math.abs(state.x(best) - x)) best = step;
  show(root, state, best);
}

function walk(root, state, event) {
  if (event.key === "Escape") return show(root, state, null);
  const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity }[event.key];
  if (by === undefined || !state.steps.length) return;
  event.preventDefault();
  const from = state.at === null ? state.steps.length - 1 : state.steps.findLastIndex((step) => step <= state.at) + by;
  show(root, state, state.steps[Math.min(state.steps.length - 1, Math.max(0, from))]);
  describe(root, state);
}

function show(root, state, at) {
  state.at = at;
  for (const panel of state.panels) {
    panel.cursor.setAttribute("visibility", at === null ? "hidden" : "visible");
    if (at !== null) for (const name of ["x1", "x2"]) panel.cursor.setAttribute(name, state.x(at));
    panel.series.forEach((series, i) => {
      // An evaluation's value holds until the next one: the last point at or before the step.
      const index = at === null ? series.x.length - 1 : series.x.findLastIndex((step) => step <= at);
      const value = series.y[index];
      const known = index >= 0 && panel.scale.shows(value);
      const step = at !== null && series.style === "main" && series.x[index] !== at ? ` ${filled(SAID.run_curve.at, { step: series.x[index] })}` : "";
      panel.values[i].textContent = known && at !== null ? `${three(value)}${panel.unit}${step}` : "";
      panel.dots[i].setAttribute("visibility", at !== null && known ? "visible" : "hidden");
      if (known) panel.dots[i].setAttribute("cx", state.x(series.x[index]));
      if (known) panel.dots[i].setAttribute("cy", panel.y(value));
    });
  }
  const title = root.querySelector("svg text.title:last-of-type");
  const axis = root.querySelectorAll("svg text.title");
  if (title && axis.length) axis[axis.length - 1].textContent =
    at === null ? state.data.x_title : `${state.data.x_title} ${at.toLocaleString("en")}`;
}

function describe(root, state) {
  const said = state.panels.flatMap((panel) =>
    panel.series.map((series, i) => `${series.name} ${panel.values[i]?.textContent ?? ""}`));
  const where = state.at === null ? "" : `${state.data.x_title} ${state.at}: `;
  root.setAttribute("aria-label", `${where}${said.join("; ")}. ${SAID.run_curve.read}`);
}

function three(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return Math.abs(value) < 1e-3 ? value.toExponential(2) : String(Number(value.toPrecision(3)));
}

function label(x, y, text, anchor, name = "tick") {
  const element = make("text", { x, y, class: name, "text-anchor": anchor });
  element.textContent = text;
  return element;
}

function make(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
