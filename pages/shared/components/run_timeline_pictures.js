// The pictures of one frame: the chosen head large, with its tokens, and every head as a thumbnail.
const MASKED_LEVEL = 255;

function filmRamp(stops) {
  const colours = stops.map(filmChannels);
  return Array.from({ length: 256 }, (_, level) => {
    const at = (level / 255) * (colours.length - 1);
    const low = Math.min(Math.floor(at), colours.length - 2);
    return colours[low].map((value, i) => Math.round(value + (colours[low + 1][i] - value) * (at - low)));
  });
}

function filmChannels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

// Where each frame's numbers begin, so that a frame is drawn without copying.
function filmOffsets(data) {
  const [layers, heads] = data.heads;
  let small = 0, large = 0;
  return data.frames.map((frame) => {
    const here = { small, large };
    small += layers * heads * frame.small[0] * frame.small[1];
    large += frame.rows.length * frame.columns.length;
    return here;
  });
}

function drawThumbnail(canvas, film, index, layer, head) {
  const [rows, columns] = film.data.frames[index].small;
  if (canvas.width !== columns || canvas.height !== rows) Object.assign(canvas, { width: columns, height: rows });
  canvas.style.aspectRatio = `${Math.max(film.shape.columns, film.shape.rows)} / ${film.shape.rows}`; // no higher than wide
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const start = film.offsets[index].small + (layer * film.data.heads[1] + head) * rows * columns;
  for (let cell = 0; cell < rows * columns; cell++) {
    const level = film.thumbs[start + cell];
    image.data.set(level === MASKED_LEVEL ? film.masked : film.ramp[Math.round((level * 255) / 254)], cell * 4);
    image.data[cell * 4 + 3] = 255;
  }
  context.putImageData(image, 0, 0);
}

// Size of a cell and room for the labels: the same in every frame, so that nothing jumps while the film plays.
function layOut(film, width) {
  const { data } = film;
  const context = document.createElement("canvas").getContext("2d");
  context.font = film.font;
  const label = (index) => cutLabel(data.tokens[index]);
  const widest = (lists) => Math.max(0, ...new Set(lists.flat()).values().map((i) => context.measureText(label(i)).width));
  const rowRoom = Math.ceil(widest(data.frames.map((frame) => frame.rows.slice(0, film.shape.rows)))) + 10;
  const flat = Math.ceil(widest(data.frames.map((frame) => frame.columns))) + 10;
  const cell = Math.max(15, Math.min(34, Math.floor((width - rowRoom - 2) / film.shape.columns)));
  const upright = flat - 6 > cell; // labels that do not fit above their column stand on end
  return { label, rowRoom, columnRoom: upright ? flat : 22, upright, cell };
}

function cutLabel(token) {
  const text = (token.starts_word ? "▁" : "") + token.text;
  return [...text].length > 14 ? `${[...text].slice(0, 13).join("")}…` : text;
}

function drawLarge(canvas, film, index) {
  const frame = film.data.frames[index];
  const { cell, rowRoom, columnRoom, upright, label } = film.layout;
  const width = rowRoom + cell * film.shape.columns + 2, height = columnRoom + cell * film.shape.rows + 2;
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
    Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  context.font = film.font;
  context.textBaseline = "middle";
  const ink = (token) => (context.fillStyle = film.data.tokens[token].special ? film.inks.quiet : film.inks.text);
  const rows = Math.min(frame.rows.length, film.shape.rows);
  frame.columns.slice(0, film.shape.columns).forEach((token, column) => {
    ink(token);
    context.save();
    context.translate(rowRoom + (column + 0.5) * cell, columnRoom - 6);
    if (upright) context.rotate(-Math.PI / 2);
    context.textAlign = upright ? "left" : "center";
    context.fillText(label(token), 0, upright ? 0 : -4);
    context.restore();
  });
  context.textAlign = "right";
  for (let row = 0; row < rows; row++) {
    ink(frame.rows[row]);
    context.fillText(label(frame.rows[row]), rowRoom - 6, columnRoom + (row + 0.5) * cell);
    for (let column = 0; column < Math.min(frame.columns.length, film.shape.columns); column++) {
      const weight = film.large[film.offsets[index].large + row * frame.columns.length + column];
      const colour = Number.isNaN(weight) ? film.masked : film.ramp[Math.round(Math.min(1, Math.max(0, weight)) * 255)];
      context.fillStyle = `color(srgb ${Array.from(colour, (part) => part / 255).join(" ")})`;
      context.fillRect(rowRoom + column * cell, columnRoom + row * cell, cell - 1, cell - 1);
    }
  }
}

// The cell under the pointer, in words; empty outside.
function cellAt(film, index, event, canvas) {
  const frame = film.data.frames[index];
  const { cell, rowRoom, columnRoom } = film.layout;
  const box = canvas.getBoundingClientRect();
  const row = Math.floor((event.clientY - box.top - columnRoom) / cell);
  const column = Math.floor((event.clientX - box.left - rowRoom) / cell);
  if (row < 0 || column < 0 || row >= Math.min(frame.rows.length, film.shape.rows)) return "";
  if (column >= Math.min(frame.columns.length, film.shape.columns)) return "";
  const weight = film.large[film.offsets[index].large + row * frame.columns.length + column];
  const [query, key] = [frame.rows[row], frame.columns[column]].map((token) => film.data.tokens[token].text);
  return `${query} → ${key}: ${Number.isNaN(weight) ? "not allowed" : filmNumber(weight)}`;
}

function filmNumber(value) {
  if (value === 0) return "0";
  if (Math.abs(value) >= 1000) return Math.round(value).toLocaleString("en");
  return Math.abs(value) < 1e-3 ? value.toExponential(1) : String(Number(value.toPrecision(3)));
}
