// A product of two matrices laid out as on paper: the left one, the right one above, and where a row and a column meet,
// their entry of the result. Pointing follows a row into the columns that it meets.
const GAP = 10, TITLE = 18, TURNED = 74; // pixels: between matrices, of a line, of the longest turned label
const DIMENSIONS = 190; // of all dimensions of a head
const LARGEST = 15, SMALLEST = 5, READABLE = 8; // of a token's cell; below the last one not each has its label
const TERMS = 3; // the products that are spelled out

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  const state = (root._state ??= build(root));
  Object.assign(state, unpack(data), { at: null });
  const [[n, inner], [, m]] = state.shapes;
  Object.assign(state, { n, inner, m, chosen: Math.min(state.row, n - 1) });
  state.canvas.setAttribute("aria-label", `${state.label}. Arrow keys go from entry to entry.`);
  lay(state);
}

function build(root) {
  const state = { root, canvas: make("", "canvas"), told: make("told"), spoken: make("spoken") };
  const { canvas } = state;
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  state.spoken.setAttribute("aria-live", "polite");
  canvas.onpointermove = canvas.onpointerdown = (event) => point(state, under(state, event));
  canvas.onpointerleave = canvas.onblur = () => point(state, null);
  canvas.onfocus = () => canvas.matches(":focus-visible") && point(state, ["result", state.chosen, 0], true);
  canvas.onkeydown = (event) => walk(state, event);
  const frame = make("scroll");
  frame.append(canvas);
  root.replaceChildren(frame, state.told, state.spoken);
  new ResizeObserver(() => state.shapes && root.clientWidth !== state.wide && lay(state)).observe(root);
  return state;
}

// Sizes and places; the picture without anything pointed at is kept, and copied at each move.
function lay(state) {
  const { root, canvas, n, inner, m, tokens } = state;
  state.wide = root.clientWidth;
  state.inks = inksOf(root);
  state.inks.label = `11px ui-monospace, monospace`;
  state.dark = isDark(root);
  const paperOf = canvas.getContext("2d");
  paperOf.font = state.inks.label;
  const room = (labels) => (labels ? Math.min(TURNED, Math.max(...labels.map((label) => paperOf.measureText(label).width))) + 6 : 0);
  const left = room(tokens.rows), between = GAP + room(tokens.inner);
  const others = tokens.inner ? m : inner; // dimensions
  const counted = tokens.inner ? inner : m;
  const free = state.wide - left - between - DIMENSIONS - 2;
  const token = Math.floor(Math.min(LARGEST, Math.max(SMALLEST, free / counted)));
  const narrow = Math.max(1, Math.floor(DIMENSIONS / others));
  state.cell = { row: token, inner: tokens.inner ? token : narrow, column: tokens.inner ? narrow : token };
  const above = TITLE + room(tokens.columns);
  const top = Math.max(above + inner * state.cell.inner + GAP, room(tokens.inner));
  const x = left + inner * state.cell.inner + between;
  state.boxes = {
    left: { x: left, y: top, rows: n, columns: inner, w: state.cell.inner, h: token },
    right: { x, y: top - GAP - inner * state.cell.inner, rows: inner, columns: m, w: state.cell.column, h: state.cell.inner },
    result: { x, y: top, rows: n, columns: m, w: state.cell.column, h: token },
  };
  state.width = x + m * state.cell.column + 2;
  state.height = top + n * token + TITLE + 2;
  const context = paper(canvas, state.width, state.height);
  for (const [index, name] of ["left", "right", "result"].entries()) drawMatrix(state, context, name, index);
  drawNames(state, context);
  state.still = new OffscreenCanvas(canvas.width, canvas.height);
  state.still.getContext("2d").drawImage(canvas, 0, 0);
  point(state, state.at);
}

function drawMatrix(state, context, name, index) {
  const { x, y, rows, columns, w, h } = state.boxes[name];
  const ramp = rampOf(state.scales[state.plain[index] ? "weights" : "signed"][state.dark ? "dark" : "light"]);
  const [low, high] = state.limits[index];
  const sheet = new OffscreenCanvas(columns, rows);
  const image = sheet.getContext("2d").createImageData(columns, rows);
  state.arrays[index].forEach((value, at) => {
    const level = Math.round((255 * (value - low)) / (high - low || 1));
    image.data.set([...ramp[Math.min(255, Math.max(0, level))], 255], 4 * at);
  });
  sheet.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(sheet, x, y, columns * w, rows * h);
  context.strokeStyle = state.inks.rule;
  context.strokeRect(x - 0.5, y - 0.5, columns * w + 1, rows * h + 1);
  Object.assign(context, { font: state.inks.font, fillStyle: state.inks.quiet, textAlign: "left" });
  context.fillText(state.names[index], x, name === "right" ? TITLE / 2 : y + rows * h + TITLE / 2 + 2);
}

function drawNames(state, context) {
  const { tokens, inks } = state, { left, right } = state.boxes;
  Object.assign(context, { font: inks.label, fillStyle: inks.text });
  const beside = (labels, { x, y, h }) => {
    context.textAlign = "right";
    each(labels, h, (label, index) => context.fillText(label, x - 5, y + (index + 0.5) * h, TURNED));
  };
  const over = (labels, { x, y, w }) => {
    context.textAlign = "left";
    each(labels, w, (label, index) => {
      context.save();
      context.translate(x + (index + 0.5) * w, y - 5);
      context.rotate(-Math.PI / 2);
      context.fillText(label, 0, 0, TURNED);
      context.restore();
    });
  };
  beside(tokens.rows, left);
  if (tokens.inner) beside(tokens.inner, right), over(tokens.inner, left);
  if (tokens.columns) over(tokens.columns, right);
}

function each(labels, size, draw) {
  const step = Math.ceil(READABLE / size);
  labels.forEach((label, index) => index % step === 0 && draw(label, index));
}

function under(state, event) {
  const frame = state.canvas.getBoundingClientRect();
  for (const [name, { x, y, rows, columns, w, h }] of Object.entries(state.boxes)) {
    const row = Math.floor((event.clientY - frame.top - y) / h), column = Math.floor((event.clientX - frame.left - x) / w);
    if (row >= 0 && row < rows && column >= 0 && column < columns) return [name, row, column];
  }
  return null;
}

function walk(state, event) {
  const [name, row, column] = state.at ?? ["result", state.chosen, 0];
  const { rows, columns } = state.boxes[name];
  const [down, right] = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key] ?? [0, 0];
  if (!down && !right) return;
  event.preventDefault();
  const inside = (value, count) => Math.min(count - 1, Math.max(0, value));
  point(state, [name, inside(row + down, rows), inside(column + right, columns)], true);
}

// Lights what takes part: a row of the left one, a column of the right one, and where they meet. The rest fades.
function point(state, at, aloud = false) {
  state.at = at;
  const [name, row, column] = at ?? ["left", state.chosen, null];
  const follows = { row: name === "right" ? null : row, column: name === "left" ? null : column };
  const met = name === "left" ? column : name === "right" ? row : null; // the inner index
  const context = state.canvas.getContext("2d");
  context.save();
  context.setTransform(1, 0, 0, 1, 0, 0);
  context.clearRect(0, 0, state.canvas.width, state.canvas.height);
  context.drawImage(state.still, 0, 0);
  context.restore();
  light(state, context, "left", follows.row, met);
  light(state, context, "right", met, follows.column);
  light(state, context, "result", follows.row, follows.column);
  state.root.dataset.row = follows.row ?? "";
  state.root.dataset.column = follows.column ?? "";
  const lines = wordsOf(state, name, row, column);
  state.told.replaceChildren(...lines.map((text) => Object.assign(make("line"), { textContent: text })));
  if (aloud) state.spoken.textContent = lines.join("; ");
}

// Fades all but a row of the left one, a column of the right one, both of the result; frames what stays.
function light(state, context, name, row, column) {
  const { x, y, rows, columns, w, h } = state.boxes[name];
  const whole = { row: name !== "right", column: name !== "left" };
  context.fillStyle = getComputedStyle(state.root).getPropertyValue("--st-background-color");
  context.globalAlpha = state.at ? 0.65 : 0.4;
  const band = { top: 0, bottom: rows, left: 0, right: columns };
  if (whole.row && row !== null) Object.assign(band, { top: row, bottom: row + 1 });
  if (whole.column && column !== null) Object.assign(band, { left: column, right: column + 1 });
  context.fillRect(x, y, columns * w, band.top * h);
  context.fillRect(x, y + band.bottom * h, columns * w, (rows - band.bottom) * h);
  context.fillRect(x, y + band.top * h, band.left * w, (band.bottom - band.top) * h);
  context.fillRect(x + band.right * w, y + band.top * h, (columns - band.right) * w, (band.bottom - band.top) * h);
  context.globalAlpha = 1;
  context.strokeStyle = state.colours[state.dark ? "dark" : "light"];
  context.lineWidth = 1.5;
  if ((whole.row && row !== null) || (whole.column && column !== null)) frame(band);
  context.lineWidth = 1;
  if (!whole.row && row !== null) frame({ ...band, top: row, bottom: row + 1 });
  if (!whole.column && column !== null) frame({ ...band, left: column, right: column + 1 });

  function frame({ top, bottom, left, right }) {
    context.strokeRect(x + left * w, y + top * h, (right - left) * w, (bottom - top) * h);
  }
}

function wordsOf(state, name, row, column) {
  const { names, inner, m } = state;
  const [left, right, result] = state.arrays;
  const named = (labels, at) => (labels ? `${labels[at]} (${at})` : `dimension ${at}`);
  const rowOf = (at) => named(state.tokens.rows, at), innerOf = (at) => named(state.tokens.inner, at);
  const columnOf = (at) => named(state.tokens.columns, at);
  if (column === null) return [`Followed: ${rowOf(row)}. Its row meets every column of ${names[1]}. Point at a number to see what becomes of it.`];
  if (name === "left") {
    const said = `${names[0]}, ${rowOf(row)}, ${innerOf(column)}: ${digits(left[row * inner + column])}`;
    return [said, `This row meets every column of ${names[1]}; this number meets its row ${innerOf(column)}.`];
  }
  if (name === "right") {
    const said = `${names[1]}, ${innerOf(row)}, ${columnOf(column)}: ${digits(right[row * m + column])}`;
    return [said, `This column meets every row of ${names[0]}.`];
  }
  const products = Array.from({ length: inner }, (_, at) => left[row * inner + at] * right[at * m + column]);
  const order = products.map((_, at) => at).sort((a, b) => Math.abs(products[b]) - Math.abs(products[a]));
  const terms = order.slice(0, TERMS).map((at) => {
    const factors = `${digits(left[row * inner + at])} × ${digits(right[at * m + column])}`;
    return `${innerOf(at)}: ${factors} = ${digits(products[at])}`;
  });
  return [
    `${names[2]}, ${rowOf(row)}, ${columnOf(column)}: ${digits(result[row * m + column])}, the sum of ${inner} products.`,
    `The largest: ${terms.join(" · ")}`,
  ];
}

function digits(value) {
  return String(Number(value.toPrecision(3))).replace("-", "−");
}
