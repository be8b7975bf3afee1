// Two planes: a query with its keys, and the values with their weighted mean. Points are dragged, or focused and moved
// with the arrow keys. While one moves, weights and output are computed here; at rest the server computes them.

const SIDE = 300;
const STEP = 0.1;
// How long an answer to the newest move is awaited; answers to moves before it are late.
const PATIENCE_MS = 5000;
const SVG = "http://www.w3.org/2000/svg";

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".root");
  const state = (root._state ??= build(root, data));
  Object.assign(state, { data, tell: setStateValue });
  const late = state.told && inLink(data) !== state.told && performance.now() - state.toldAt < PATIENCE_MS;
  if (!state.moving && !late) {
    Object.assign(state, { query: [...data.query], keys: copy(data.keys), values: copy(data.values), told: null });
  }
  draw(state);
}

function inLink({ query, keys, values }) {
  return [query, ...keys, ...values].map((point) => point.map((value) => Number(value.toFixed(1))).join(",")).join(";");
}

function written(value, digits) {
  return value.toFixed(digits).replace("-", "−");
}

function copy(points) {
  return points.map((point) => [...point]);
}

function build(root, data) {
  const state = { moving: false };
  const planes = make("div", { class: "planes" });
  state.left = plane(planes, SAID.plane.query_and_keys, data.reach);
  state.right = plane(planes, SAID.plane.values_and_output, data.reach);
  state.triangle = state.right.appendChild(make("polygon", { class: "hull" }, SVG));
  state.lines = data.names.map(() => state.right.appendChild(make("line", {}, SVG)));
  state.output = state.right.appendChild(spot(SAID.plane.output, 24));
  state.handles = [
    handle(state, state.left, "q", SAID.plane.query, (now) => now.query),
    ...data.names.map((name, i) => handle(state, state.left, name, filled(SAID.plane.key, { name }), (now) => now.keys[i])),
    ...data.names.map((name, i) => handle(state, state.right, name, filled(SAID.plane.value, { name }), (now) => now.values[i])),
  ];
  state.left.append(state.handles[0].group); // above the keys, so that it can be taken where it meets one
  state.table = make("table", {});
  root.replaceChildren(planes, state.table);
  return state;
}

function plane(box, title, reach) {
  const figure = make("figure", {});
  const svg = make("svg", { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "group", "aria-label": title }, SVG);
  const half = SIDE / 2;
  svg.append(
    make("rect", { class: "frame", x: 0.5, y: 0.5, width: SIDE - 1, height: SIDE - 1 }, SVG),
    make("line", { class: "axis", x1: 0, x2: SIDE, y1: half, y2: half }, SVG),
    make("line", { class: "axis", x1: half, x2: half, y1: 0, y2: SIDE }, SVG),
    ...[-2, 2].flatMap((value) => ticks(value, half + (value / reach) * half, half - (value / reach) * half)),
  );
  const caption = make("figcaption", {});
  caption.textContent = title;
  figure.append(svg, caption);
  box.append(figure);
  return svg;
}

function ticks(value, across, down) {
  const half = SIDE / 2;
  const name = written(value, 0);
  return [
    make("line", { class: "axis", x1: across, x2: across, y1: half - 3, y2: half + 3 }, SVG),
    make("line", { class: "axis", x1: half - 3, x2: half + 3, y1: down, y2: down }, SVG),
    text(name, { class: "tick", x: across, y: half + 15, "text-anchor": "middle" }),
    text(name, { class: "tick", x: half - 6, y: down + 4, "text-anchor": "end" }),
  ];
}

function text(content, attributes) {
  const label = make("text", attributes, SVG);
  label.textContent = content;
  return label;
}

function spot(name, above = -12) {
  const group = make("g", { class: "spot" }, SVG);
  group.append(make("circle", { r: 7 }, SVG), text(name, { y: above, "text-anchor": "middle" }));
  return group;
}

// A point that can be dragged: queries and keys at the end of an arrow, values alone.
function handle(state, svg, mark, name, pointOf) {
  const arrow = svg === state.right ? null : svg.appendChild(make("line", { class: "arrow" }, SVG));
  const group = spot(mark);
  group.prepend(make("circle", { class: "grip", r: 18 }, SVG));
  svg.append(group);
  const move = (point) => {
    const { reach } = state.data;
    const near = (value) => Math.round(Math.min(Math.max(value, -reach), reach) / STEP) * STEP;
    pointOf(state).splice(0, 2, ...point.map((value) => Number(near(value).toFixed(1))));
    state.moving = true;
    draw(state);
  };
  group.onpointerdown = (event) => {
    if (state.data.locked) return;
    event.preventDefault();
    group.focus();
    group.setPointerCapture(event.pointerId);
    group.onpointermove = (moved) => move(toPlane(state, svg, moved));
  };
  group.onpointerup = group.onpointercancel = () => {
    group.onpointermove = null;
    rest(state);
  };
  group.onkeydown = (event) => {
    const by = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!by || state.data.locked) return;
    event.preventDefault();
    event.stopPropagation();
    const far = event.shiftKey ? 5 : 1;
    move(pointOf(state).map((value, axis) => value + by[axis] * STEP * far));
  };
  group.onkeyup = group.onblur = () => rest(state);
  return { group, arrow, name, pointOf };
}

function toPlane(state, svg, { clientX, clientY }) {
  const box = svg.getBoundingClientRect();
  const { reach } = state.data;
  const across = ((clientX - box.left) / box.width) * 2 - 1;
  const up = 1 - ((clientY - box.top) / box.height) * 2;
  return [across * reach, up * reach];
}

function rest(state) {
  if (!state.moving) return;
  state.moving = false;
  Object.assign(state, { told: inLink(state), toldAt: performance.now() });
  state.tell("points", state.told);
}

// softmax(q k / divisor) v, as in eq. 1.
function attend({ query, keys, values, data }) {
  const products = keys.map((key) => key[0] * query[0] + key[1] * query[1]);
  const scores = products.map((product) => product / data.divisor);
  const highest = Math.max(...scores);
  const powers = scores.map((score) => Math.exp(score - highest));
  const total = powers.reduce((sum, power) => sum + power, 0);
  const weights = powers.map((power) => power / total);
  const output = [0, 1].map((axis) => weights.reduce((sum, weight, i) => sum + weight * values[i][axis], 0));
  return { products, scores, weights, output };
}

function draw(state) {
  const { data, handles, lines } = state;
  const found = attend(state);
  const dark = isDark(state.table);
  const ink = data.ink[dark ? "dark" : "light"];
  const colours = data.colours.map((colour) => colour[dark ? "dark" : "light"]);
  handles.forEach(({ group, arrow, name, pointOf }, index) => {
    const point = pointOf(state);
    const colour = index ? colours[(index - 1) % colours.length] : ink;
    place(group, state, point, colour);
    if (arrow) joined(arrow, state, [0, 0], point, colour, 2);
    group.setAttribute("tabindex", data.locked ? "-1" : "0");
    group.setAttribute("role", data.locked ? "img" : "button");
    group.setAttribute("aria-label", filled(SAID.plane.at, { name, place: point.map((value) => written(value, 1)).join(", ") }));
  });
  lines.forEach((line, i) => joined(line, state, found.output, state.values[i], colours[i], 1 + 9 * found.weights[i]));
  const corners = data.hull ? state.values : [];
  state.triangle.setAttribute("points", corners.map((point) => toScreen(state, point).join(",")).join(" "));
  place(state.output, state, found.output, ink);
  table(state, found, colours);
}

// The theme's own colour of text tells which of two colours is legible on its background.
function isDark(element) {
  const [red, green, blue] = getComputedStyle(element).color.match(/[\d.]+/g).map(Number);
  return red + green + blue > 384;
}

function toScreen({ data }, [x, y]) {
  return [((x / data.reach + 1) * SIDE) / 2, ((1 - y / data.reach) * SIDE) / 2];
}

function place(group, state, point, colour) {
  group.setAttribute("transform", `translate(${toScreen(state, point).join(" ")})`);
  group.style.color = colour;
}

function joined(line, state, from, to, colour, width) {
  const [[x1, y1], [x2, y2]] = [toScreen(state, from), toScreen(state, to)];
  for (const [name, value] of Object.entries({ x1, y1, x2, y2, "stroke-width": width })) line.setAttribute(name, value);
  line.style.color = colour;
}

function table({ table: element, data, keys, values }, { products, scores, weights, output }, colours) {
  const scaled = data.divisor !== 1;
  const heads = ["", SAID.plane.key_column, "q · k", ...(scaled ? ["÷ √2"] : []), SAID.plane.weight_column, SAID.plane.value_column];
  const rows = data.names.map((name, i) => [
    name,
    pair(keys[i], 1),
    written(products[i], 2),
    ...(scaled ? [written(scores[i], 2)] : []),
    written(weights[i], 3),
    pair(values[i], 1),
  ]);
  element.replaceChildren(
    row(heads, "th"),
    ...rows.map((cells, i) => row(cells, "td", colours[i])),
    row([SAID.plane.output, ...Array(heads.length - 2).fill(""), pair(output, 2)], "td"),
  );
}

function pair(point, digits) {
  return `(${point.map((value) => written(value, digits)).join(", ")})`;
}

function row(cells, kind, colour) {
  const line = make("tr", {});
  cells.forEach((text, i) => {
    const cell = make(i ? kind : "th", {});
    cell.textContent = text;
    if (!i && colour) cell.style.color = colour;
    line.append(cell);
  });
  return line;
}

function make(name, attributes, space) {
  const element = space ? document.createElementNS(space, name) : document.createElement(name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  return element;
}
