// Tables of signed numbers side by side: what stands around the pictures, and reading a value by pointer or keys.
const PAGE = 10; // rows that Page Up and Page Down move

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  const state = (root._state ??= { root, at: null, wide: 0 });
  Object.assign(state, unpack(data));
  state.panels.forEach((panel, index) => Object.assign(panel, { shape: state.shapes[index], values: state.arrays[index] }));
  const theme = isDark(root) ? "dark" : "light";
  state.ramp = rampOf(state.scales[theme]);
  state.pixels = Uint32Array.from(state.ramp, ([red, green, blue]) => ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0);
  if (state.views?.length !== state.panels.length) build(state);
  state.panels.forEach((panel, index) => describePanel(state, panel, state.views[index]));
  fillLegend(state);
  drawAll(state);
  if (state.at) point(state, kept(state, state.at));
  if (!state.observer) {
    state.observer = new ResizeObserver(() => root.clientWidth !== state.wide && drawAll(state));
    state.observer.observe(root);
  }
}

function build(state) {
  const { root } = state;
  state.legend = make("legend");
  state.frame = make("panels");
  state.tip = make("tip");
  state.spoken = make("spoken");
  state.spoken.setAttribute("aria-live", "polite");
  state.tip.hidden = true;
  state.at = null;
  state.views = state.panels.map((_, index) => buildPanel(state, index));
  state.frame.append(...state.views.map((view) => view.box));
  root.replaceChildren(state.legend, state.frame, state.tip, state.spoken);
}

function buildPanel(state, index) {
  const view = { box: make("panel"), title: make("title"), canvas: make("", "canvas"), cursor: make("cursor") };
  view.cursor.hidden = true;
  view.canvas.tabIndex = 0;
  view.canvas.setAttribute("role", "img");
  view.canvas.onmousemove = (event) => point(state, under(state, index, event));
  view.canvas.onmouseleave = () => point(state, null);
  view.canvas.onfocus = () =>
    view.canvas.matches(":focus-visible") && point(state, kept(state, [index, ...(view.last ?? [0, 0])]), true);
  view.canvas.onblur = () => point(state, null);
  view.canvas.onkeydown = (event) => walk(state, index, event);
  const picture = make("picture");
  picture.append(view.canvas, view.cursor);
  view.box.append(view.title, picture);
  return view;
}

function describePanel(state, panel, view) {
  const [rows, columns] = panel.shape;
  view.title.textContent = view.title.title = panel.title;
  const size = `${rows} rows (${state.axes[1]}) by ${columns} columns (${state.axes[0]})`;
  view.canvas.setAttribute("aria-label", `${panel.title}: ${size}. Arrow keys read the values.`);
}

function fillLegend(state) {
  const bar = make("bar");
  bar.style.background = `linear-gradient(to right, ${state.ramp.filter((_, i) => i % 15 === 0).map((c) => `rgb(${c.join(" ")})`).join(", ")})`;
  const ends = make("ends");
  const reach = Number(state.reach.toPrecision(3));
  for (const text of [`−${reach}`, "0", `${reach}`]) ends.append(Object.assign(make("", "span"), { textContent: text }));
  const ruler = make("ruler");
  ruler.append(bar, ends);
  const named = make("sample");
  named.append(state.quantity);
  state.legend.replaceChildren(ruler, named);
  if (state.panels.every((panel) => panel.untrained_from === null)) return;
  const sample = make("sample");
  sample.append(make("dots"), "never trained from here on");
  state.legend.append(sample);
}

function under(state, index, event) {
  const { plot, canvas } = state.views[index];
  const frame = canvas.getBoundingClientRect();
  const [rows, columns] = state.panels[index].shape;
  const row = Math.floor(((event.clientY - frame.top - plot.top) / plot.height) * rows);
  const column = Math.floor(((event.clientX - frame.left - plot.left) / plot.width) * columns);
  return row >= 0 && row < rows && column >= 0 && column < columns ? [index, row, column] : null;
}

function kept(state, [index, row, column]) {
  const [rows, columns] = state.panels[index].shape;
  return [index, Math.min(row, rows - 1), Math.min(column, columns - 1)];
}

function walk(state, index, event) {
  const [, row, column] = state.at ?? [index, ...(state.views[index].last ?? [0, 0])];
  const [rows, columns] = state.panels[index].shape;
  const goal = {
    ArrowLeft: [row, column - 1],
    ArrowRight: [row, column + 1],
    ArrowUp: [row - 1, column],
    ArrowDown: [row + 1, column],
    PageUp: [row - PAGE, column],
    PageDown: [row + PAGE, column],
    Home: [row, 0],
    End: [row, columns - 1],
  }[event.key];
  if (event.key === "Escape") return point(state, null);
  if (!goal) return;
  event.preventDefault();
  const inside = (value, count) => Math.min(count - 1, Math.max(0, value));
  point(state, [index, inside(goal[0], rows), inside(goal[1], columns)], true);
}

function point(state, at, aloud = false) {
  state.at = at;
  for (const view of state.views) view.cursor.hidden = true;
  state.tip.hidden = !at;
  if (!at) return;
  const [index, row, column] = at;
  const { plot, canvas, cursor } = state.views[index];
  const [rows, columns] = state.panels[index].shape;
  state.views[index].last = [row, column];
  const cell = { width: plot.width / columns, height: plot.height / rows };
  const [x, y] = [plot.left + (column + 0.5) * cell.width, plot.top + (row + 0.5) * cell.height];
  const size = { width: Math.max(7, cell.width), height: Math.max(7, cell.height) };
  cursor.hidden = false;
  Object.assign(cursor.style, {
    left: `${x - size.width / 2}px`, top: `${y - size.height / 2}px`, width: `${size.width}px`, height: `${size.height}px`,
  });
  const lines = wordsOf(state, at);
  state.tip.replaceChildren(...lines.map((text) => Object.assign(make("line"), { textContent: text })));
  const [own, frame] = [state.root.getBoundingClientRect(), canvas.getBoundingClientRect()];
  const right = frame.left - own.left + x + size.width / 2 + 8;
  const fits = right + state.tip.offsetWidth < own.width;
  state.tip.style.left = `${fits ? right : Math.max(0, right - state.tip.offsetWidth - size.width - 16)}px`;
  state.tip.style.top = `${frame.top - own.top + y}px`;
  if (aloud) state.spoken.textContent = lines.join("; ");
}

function wordsOf(state, [index, row, column]) {
  const panel = state.panels[index];
  const value = panel.values[row * panel.shape[1] + column];
  const said = [
    `${state.axes[1]} ${row}, ${state.axes[0]} ${column}`,
    Number.isNaN(value) ? `no ${state.quantity}` : `${state.quantity} ${exact(value).replace("-", "−")}`,
  ];
  if (panel.untrained_from !== null && row >= panel.untrained_from) said.push("this row was never trained");
  return said;
}
