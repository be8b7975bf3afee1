// Below the slider, over the same steps: the loss, and a line of colour for each head.
const FILM_SVG = "http://www.w3.org/2000/svg";
const GUTTER = 60, EDGE = 8, LOSS_HEIGHT = 96;

function svgElement(name, attributes, text) {
  const element = document.createElementNS(FILM_SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

// Snapshots stand at equal distances, as they lie on a logarithmic scale but for the first few; a step between two of
// them is placed between them on that scale.
function placeOf(steps, step) {
  const after = steps.findIndex((other) => other >= step);
  if (after < 0) return null;
  if (after === 0 || steps[after] === step) return after;
  const [low, high] = [steps[after - 1], steps[after]].map((s) => Math.log(s + 1));
  return after - 1 + (Math.log(step + 1) - low) / (high - low);
}

function stripX(film, place) {
  return GUTTER + (place + 0.5) * film.pitch;
}

function drawLoss(film) {
  const { svg, legend } = film.loss;
  const steps = film.steps, width = film.width;
  const values = film.data.curves.flatMap((curve) => curve.y);
  const high = Math.max(...values, 1e-9) * 1.15, low = Math.max(Math.min(...values, high), high / 1e4) / 1.15;
  const y = (value) => 6 + LOSS_HEIGHT * (1 - Math.log(Math.max(value, low) / low) / Math.log(high / low || 2));
  film.loss.y = y;
  svg.replaceChildren();
  svg.setAttribute("width", width);
  svg.setAttribute("height", LOSS_HEIGHT + 12);
  const ticks = [];
  for (let decade = -5; decade < 5; decade++) for (const digit of [1, 2, 5]) ticks.push(digit * 10 ** decade);
  let shown = ticks.filter((tick) => tick >= low && tick <= high);
  if (shown.length > 7) shown = shown.filter((tick) => Number.isInteger(Math.round(Math.log10(tick) * 1e6) / 1e6));
  for (const tick of shown) {
    svg.append(svgElement("line", { class: "rule", x1: GUTTER, x2: width - EDGE, y1: y(tick), y2: y(tick) }));
    const label = { x: GUTTER - 8, y: y(tick) + 4, "text-anchor": "end" };
    svg.append(svgElement("text", label, String(Number(tick.toPrecision(3)))));
  }
  film.loss.marks = film.data.curves.map((curve, which) => {
    const points = curve.x.map((step, i) => [placeOf(steps, step), curve.y[i]]).filter(([place]) => place !== null);
    const path = points.map(([place, value], i) =>
      `${i ? "L" : "M"}${stripX(film, place).toFixed(1)},${y(value).toFixed(1)}`);
    svg.append(svgElement("path", { class: `curve curve-${which}`, d: path.join("") }));
    return svg.appendChild(svgElement("circle", { class: `mark curve-${which}`, r: 4, visibility: "hidden" }));
  });
  film.loss.cursor = svg.appendChild(svgElement("line", { class: "cursor", y1: 2, y2: LOSS_HEIGHT + 10 }));
  svg.append(...film.loss.marks);
  legend.replaceChildren();
  film.loss.values = film.data.curves.map((curve, which) => {
    const item = document.createElement("span"), key = document.createElement("i"), value = document.createElement("b");
    item.className = "entry";
    key.className = `key curve-${which}`;
    item.append(key, `${curve.name} `, value);
    legend.append(item);
    return value;
  });
}

// Each curve's last value at or before the step: what was known then.
function markLoss(film, index) {
  const step = film.steps[index];
  const x = stripX(film, index);
  film.loss.cursor.setAttribute("x1", x);
  film.loss.cursor.setAttribute("x2", x);
  film.data.curves.forEach((curve, which) => {
    const at = curve.x.findLastIndex((other) => other <= step);
    const mark = film.loss.marks[which];
    mark.setAttribute("visibility", at < 0 ? "hidden" : "visible");
    film.loss.values[which].textContent = at < 0 ? "–" : filmNumber(curve.y[at]);
    if (at < 0) return;
    mark.setAttribute("cx", stripX(film, placeOf(film.steps, curve.x[at])));
    mark.setAttribute("cy", film.loss.y(curve.y[at]));
  });
}

function drawHeads(film) {
  const { scores, heads: [layers, heads] } = film.data;
  const { svg, canvas, title } = film.heads;
  film.heads.box.hidden = !scores;
  if (!scores) return;
  const count = layers * heads, columns = film.steps.length;
  const row = (film.heads.row = Math.max(5, Math.min(16, Math.floor(220 / count))));
  Object.assign(canvas, { width: columns, height: count });
  Object.assign(canvas.style, {
    left: `${GUTTER}px`, width: `${film.pitch * columns}px`, height: `${row * count}px`,
  });
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, count);
  scores.values.forEach((line, head) => line.forEach((value, index) => {
    const share = value === null ? 0 : Math.min(1, Math.max(0, value / (scores.high || 1)));
    const colour = value === null ? film.masked : film.ramp[Math.round(255 * (scores.falling ? 1 - share : share))];
    image.data.set([...colour, 255], (head * columns + index) * 4);
  }));
  context.putImageData(image, 0, 0);
  const bottom = row * count;
  svg.replaceChildren();
  svg.setAttribute("width", film.width);
  svg.setAttribute("height", bottom + 20);
  for (let layer = 0; layer < layers; layer++) {
    const top = layer * heads * row;
    if (layer) svg.append(svgElement("line", { class: "part", x1: GUTTER, x2: film.width - EDGE, y1: top, y2: top }));
    for (let head = 0; head < heads; head++) {
      if (row < 11 && head) continue;
      const chosen = layer === film.selected[0] && head === film.selected[1];
      const place = { x: GUTTER - 8, y: top + (head + 0.5) * row + 4, "text-anchor": "end", class: chosen ? "chosen" : "" };
      svg.append(svgElement("text", place, row < 11 ? `layer ${layer}` : `${layer} · ${head}`));
    }
  }
  const line = (film.selected[0] * heads + film.selected[1]) * row;
  const whole = { x: GUTTER - 1, y: line - 1, width: film.pitch * columns + 2, height: row + 2 };
  svg.append(svgElement("rect", { class: "chosen", ...whole }));
  if (scores.jump) {
    const [layer, head, first, last] = scores.jump;
    const box = { x: stripX(film, first) - film.pitch / 2, y: (layer * heads + head) * row - 2,
      width: film.pitch * (last - first + 1), height: row + 4, rx: 2 };
    svg.append(svgElement("rect", { class: "jump-halo", ...box }), svgElement("rect", { class: "jump", ...box }));
  }
  drawStepLabels(film, svg, bottom + 15);
  film.heads.cursor = svg.appendChild(svgElement("line", { class: "cursor", y1: -2, y2: bottom + 2 }));
  title.textContent = scores.title;
}

function drawStepLabels(film, svg, y) {
  let free = -Infinity;
  const last = film.steps.length - 1;
  const half = (step) => 4 + 3.5 * step.toLocaleString("en").length;
  const end = stripX(film, last) - half(film.steps[last]);
  film.steps.forEach((step, index) => {
    const x = stripX(film, index);
    const round = step === 0 || Number.isInteger(Math.log2(step));
    if (index !== last && (!round || x - half(step) < free || x + half(step) > end)) return;
    svg.append(svgElement("text", { x, y, "text-anchor": "middle" }, step.toLocaleString("en")));
    free = x + half(step);
  });
  svg.append(svgElement("text", { x: GUTTER - 8, y, "text-anchor": "end", class: "quiet" }, "step"));
}

function markHeads(film, index) {
  const { scores } = film.data;
  if (!scores) return;
  const x = stripX(film, index);
  film.heads.cursor.setAttribute("x1", x);
  film.heads.cursor.setAttribute("x2", x);
  sayHead(film, film.selected, index);
}

function sayHead(film, [layer, head], index) {
  const { scores, heads } = film.data;
  const value = scores.values[layer * heads[1] + head][index];
  const said = value === null ? "not computed yet" : `${filmNumber(value)}${scores.unit}`;
  film.heads.value.textContent = `layer ${layer} · head ${head} at step ${film.steps[index].toLocaleString("en")}: ${said}`;
}

function placeAt(film, event, element) {
  const x = event.clientX - element.getBoundingClientRect().left;
  return Math.max(0, Math.min(film.steps.length - 1, Math.floor((x - GUTTER) / film.pitch)));
}

function headAt(film, event) {
  const [layers, heads] = film.data.heads;
  const line = Math.floor((event.clientY - film.heads.svg.getBoundingClientRect().top) / film.heads.row);
  return line >= 0 && line < layers * heads ? [Math.floor(line / heads), line % heads] : null;
}
