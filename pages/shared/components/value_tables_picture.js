// The pictures: cells in colours around 0, a few ticks, the names of the axes.
const LEFT = 52, RIGHT = 6, TOP = 6, BOTTOM = 40;
const TALL = 320; // of a table
const SIDE = 400; // of a square one, at most
const NARROWEST = 200; // of a picture with its axes; below it the tables scroll

function drawAll(state) {
  state.wide = state.root.clientWidth;
  const gap = 20, count = state.panels.length;
  const width = Math.max(NARROWEST, Math.floor((state.wide - gap * (count - 1)) / count));
  const inks = inksOf(state.root);
  state.panels.forEach((panel, index) => drawPanel(state, panel, state.views[index], width, inks));
  state.root.dataset.drawn = state.panels.map((panel) => panel.shape.join(" × ")).join(", ");
}

function drawPanel(state, panel, view, width, inks) {
  let plot = { left: LEFT, top: TOP, width: width - LEFT - RIGHT, height: TALL };
  if (state.square) plot.width = plot.height = Math.min(plot.width, SIDE);
  view.plot = plot;
  width = LEFT + plot.width + RIGHT;
  view.title.style.maxWidth = `${plot.width}px`;
  const context = paper(view.canvas, width, TOP + plot.height + BOTTOM);
  context.imageSmoothingEnabled = false;
  context.drawImage(averaged(cells(state, panel), plot), plot.left, plot.top, plot.width, plot.height);
  drawAxes(context, state, panel, plot, inks);
}

// The same with as many rows and columns as there are pixels for, where the cells are smaller than pixels.
function averaged(sheet, plot) {
  const ratio = window.devicePixelRatio || 1;
  const width = Math.min(sheet.width, Math.round(plot.width * ratio));
  const height = Math.min(sheet.height, Math.round(plot.height * ratio));
  if (width === sheet.width && height === sheet.height) return sheet;
  const small = new OffscreenCanvas(width, height);
  const context = small.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.drawImage(sheet, 0, 0, width, height);
  return small;
}

// One pixel for each cell.
function cells(state, panel) {
  const [rows, columns] = panel.shape;
  const sheet = new OffscreenCanvas(columns, rows);
  const context = sheet.getContext("2d");
  const image = context.createImageData(columns, rows);
  const out = new Uint32Array(image.data.buffer);
  const { values } = panel, { pixels } = state, factor = 127.5 / state.reach;
  for (let i = 0; i < out.length; i++) {
    const value = values[i];
    if (value === value) out[i] = pixels[Math.round(value * factor + 127.5)];
  }
  context.putImageData(image, 0, 0);
  return sheet;
}

function drawAxes(context, state, panel, plot, inks) {
  const [rows, columns] = panel.shape;
  Object.assign(context, { strokeStyle: inks.quiet, fillStyle: inks.text, font: inks.font, textAlign: "right" });
  for (const row of ticksOf(rows, plot.height, 40)) {
    const y = plot.top + ((row + 0.5) / rows) * plot.height;
    rule(context, plot.left - 5, y, plot.left - 1, y);
    context.fillText(row, plot.left - 8, y);
  }
  context.textAlign = "center";
  const bottom = plot.top + plot.height;
  for (const column of ticksOf(columns, plot.width, 56)) {
    const x = plot.left + ((column + 0.5) / columns) * plot.width;
    rule(context, x, bottom + 1, x, bottom + 5);
    context.fillText(column, x, bottom + 14);
  }
  drawTitles(context, plot, state.axes, inks);
  if (panel.untrained_from === null) return;
  const y = plot.top + (panel.untrained_from / rows) * plot.height;
  context.strokeStyle = inks.text;
  context.setLineDash([2, 3]);
  rule(context, plot.left, y, plot.left + plot.width, y);
}

function ticksOf(count, room, apart) {
  const step = roundStep(Math.max(1, (count * apart) / room));
  return Array.from({ length: Math.ceil(count / step) }, (_, index) => index * step);
}
