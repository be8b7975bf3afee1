// Curves over one axis. Above them stand their names and, under the pointer or the arrow keys, their values there.
const LEFT = 56, RIGHT = 8, TOP = 8, BOTTOM = 40, TALL = 260;

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  const state = (root._state ??= begin(root));
  Object.assign(state, unpack(data));
  const theme = isDark(root) ? "dark" : "light";
  let at = 0;
  for (const series of state.series) {
    series.colour = series.colours[theme];
    [series.x, series.y] = [state.arrays[at++], state.arrays[at++]];
    if (series.banded) [series.low, series.high] = [state.arrays[at++], state.arrays[at++]];
  }
  state.places = [...new Set(state.series.flatMap((series) => [...series.x]))].sort((a, b) => a - b);
  fillLegend(state);
  show(state, state.at === null ? null : nearest(state, state.at));
}

function begin(root) {
  const state = { root, at: null, wide: 0, legend: make("legend"), canvas: make("", "canvas"), spoken: make("spoken") };
  state.spoken.setAttribute("aria-live", "polite");
  root.replaceChildren(state.legend, state.canvas, state.spoken);
  state.canvas.onmousemove = (event) => show(state, nearest(state, valueAt(state, event)));
  state.canvas.onmouseleave = root.onblur = () => state.at !== null && show(state, null);
  root.onkeydown = (event) => walk(state, event);
  state.observer = new ResizeObserver(() => root.clientWidth !== state.wide && draw(state));
  state.observer.observe(root);
  return state;
}

function fillLegend(state) {
  state.values = [];
  state.legend.replaceChildren(
    ...state.series.map((series) => {
      const [entry, key, value] = [make("entry", "span"), make("key", "i"), make("", "b")];
      key.style.setProperty("--own", series.colour);
      entry.append(key, `${series.name} `, value);
      state.values.push(value);
      return entry;
    }),
  );
  const names = state.series.map((series) => series.name).join("; ");
  state.root.setAttribute("aria-label", `${state.axes[1]} by ${state.axes[0]}: ${names}. Arrow keys read the values.`);
}

function draw(state) {
  state.wide = state.root.clientWidth;
  const width = Math.max(240, state.wide);
  const plot = (state.plot = { left: LEFT, top: TOP, width: width - LEFT - RIGHT, height: TALL });
  const context = paper(state.canvas, width, TOP + TALL + BOTTOM);
  const inks = inksOf(state.root);
  const shown = (value) => Number.isFinite(value) && (!state.log || value > 0);
  const values = state.series.flatMap((series) => [series.y, series.low ?? [], series.high ?? []].flatMap((all) => [...all])).filter(shown);
  const scale = state.log ? powers(values) : evenly(values);
  const [first, last] = [state.places[0] ?? 0, state.places.at(-1) || 1];
  state.x = (place) => plot.left + (last > first ? (place - first) / (last - first) : 0.5) * plot.width;
  state.y = (value) => plot.top + (1 - scale.at(value)) * plot.height;
  context.font = inks.font;
  drawGrid(context, state, plot, inks, scale, [first, last]);
  for (const series of state.series) if (series.banded) drawBand(context, state, series);
  for (const series of state.series) drawLine(context, state, series, shown);
  if (state.at !== null) drawCursor(context, state, inks, shown);
  state.root.dataset.drawn = state.series.map((series) => series.x.length).join(", ");
}

function drawGrid(context, state, plot, inks, scale, [first, last]) {
  const bottom = plot.top + plot.height;
  Object.assign(context, { strokeStyle: inks.rule, fillStyle: inks.text, textAlign: "right" });
  for (const tick of scale.ticks) {
    rule(context, plot.left, state.y(tick), plot.left + plot.width, state.y(tick));
    context.fillText(scale.text(tick), plot.left - 6, state.y(tick));
  }
  context.strokeStyle = inks.quiet;
  rule(context, plot.left, bottom, plot.left + plot.width, bottom);
  context.textAlign = "center";
  const step = Math.max(1, roundStep(((last - first || 1) * 90) / plot.width));
  for (let tick = Math.ceil(first / step) * step; tick <= last; tick += step) {
    rule(context, state.x(tick), bottom, state.x(tick), bottom + 4);
    context.fillText(tick.toLocaleString("en"), state.x(tick), bottom + 14);
  }
  const here = state.at === null ? "" : ` ${state.at.toLocaleString("en")}`;
  drawTitles(context, plot, [`${state.axes[0]}${here}`, state.axes[1]], inks);
}

function drawBand(context, state, { x, low, high, colour }) {
  context.beginPath();
  for (let i = 0; i < x.length; i++) context.lineTo(state.x(x[i]), state.y(high[i]));
  for (let i = x.length - 1; i >= 0; i--) context.lineTo(state.x(x[i]), state.y(low[i]));
  Object.assign(context, { fillStyle: colour, globalAlpha: 0.15 });
  context.fill();
  context.globalAlpha = 1;
}

function drawLine(context, state, { x, y, colour }, shown) {
  Object.assign(context, { strokeStyle: colour, fillStyle: colour, lineWidth: 2, lineJoin: "round" });
  context.beginPath();
  for (let i = 0; i < x.length; i++) {
    if (!shown(y[i])) continue;
    if (i && shown(y[i - 1])) context.lineTo(state.x(x[i]), state.y(y[i]));
    else context.moveTo(state.x(x[i]), state.y(y[i]));
  }
  context.stroke();
  context.lineWidth = 1;
  for (let i = 0; state.marks && i < x.length; i++) if (shown(y[i])) dot(context, state.x(x[i]), state.y(y[i]), 2.5);
}

function dot(context, x, y, radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
  context.fill();
}

function evenly(values) {
  let [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0, 1];
  if (high - low < 1e-12) [low, high] = [low - 0.5, high + 0.5];
  const step = roundStep((high - low) / 5);
  [low, high] = [Math.floor(low / step + 1e-6) * step, Math.ceil(high / step - 1e-6) * step];
  const ticks = Array.from({ length: Math.round((high - low) / step) + 1 }, (_, i) => low + i * step);
  return { at: (v) => (v - low) / (high - low), ticks, text: (tick) => readable(Math.abs(tick) < step / 2 ? 0 : tick) };
}

function powers(values) {
  const [low, high] = values.length ? [Math.min(...values), Math.max(...values)] : [0.1, 1];
  const first = Math.floor(Math.log10(low)), last = Math.max(first + 1, Math.ceil(Math.log10(high)));
  const step = Math.ceil((last - first) / 6);
  const ticks = [];
  for (let exponent = first; exponent <= last; exponent += step) ticks.push(10 ** exponent);
  return { at: (v) => (Math.log10(v) - first) / (last - first), ticks, text: power };
}

function power(tick) {
  const digits = String(Math.round(Math.log10(tick)));
  return digits === "0" ? "1" : `10${digits.replace(/./g, (sign) => (sign === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[sign]))}`;
}

function readable(value) {
  if (value === 0) return "0";
  const text = Math.abs(value) < 1e-3 || Math.abs(value) >= 1e5 ? value.toExponential(3).replace(/\.?0+e/, "e") : String(Number(value.toPrecision(4)));
  return text.replaceAll("-", "−");
}

function valueAt(state, event) {
  const x = event.clientX - state.canvas.getBoundingClientRect().left;
  const [first, last] = [state.places[0], state.places.at(-1)];
  return first + ((x - state.plot.left) / state.plot.width) * (last - first);
}

function nearest(state, place) {
  return state.places.reduce((best, here) => (Math.abs(here - place) < Math.abs(best - place) ? here : best), state.places[0]);
}

function walk(state, event) {
  if (event.key === "Escape") return show(state, null);
  const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20, Home: -Infinity, End: Infinity }[event.key];
  if (by === undefined || !state.places.length) return;
  event.preventDefault();
  const last = state.places.length - 1;
  const goal = state.at === null ? (by === Infinity ? last : 0) : state.places.indexOf(state.at) + by;
  show(state, state.places[Math.min(last, Math.max(0, goal))]);
  const said = state.series.map((series, i) => `${series.name} ${state.values[i].textContent || "none"}`);
  state.spoken.textContent = `${state.axes[0]} ${state.at}: ${said.join("; ")}`;
}

function show(state, at) {
  state.at = at ?? null;
  state.series.forEach((series, i) => {
    const value = series.y[series.x.indexOf(at)];
    state.values[i].textContent = value === undefined || Number.isNaN(value) ? "" : readable(value);
  });
  draw(state);
}

function drawCursor(context, state, inks, shown) {
  const { at, plot } = state;
  context.strokeStyle = inks.quiet;
  context.setLineDash([2, 3]);
  rule(context, state.x(at), plot.top, state.x(at), plot.top + plot.height);
  context.setLineDash([]);
  for (const series of state.series) {
    const value = series.y[series.x.indexOf(at)];
    context.fillStyle = series.colour;
    if (shown(value)) dot(context, state.x(at), state.y(value), 4);
  }
}
