// Shared by the canvases that draw values on axes: their bytes, their ticks, their lines.

// The header that packed_arrays.py wrote, with its `arrays`.
function unpack(data) {
  const length = new DataView(data.buffer, data.byteOffset, 4).getUint32(0, true);
  let at = data.byteOffset + 4 + length;
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(data.buffer, at - length, length)));
  header.arrays = header.shapes.map((shape) => {
    const size = 4 * shape.reduce((product, count) => product * count, 1);
    at += size;
    return new Float32Array(data.buffer.slice(at - size, at));
  });
  return header;
}

function make(className, name = "div") {
  const element = document.createElement(name);
  element.className = className;
  return element;
}

function inksOf(root) {
  const style = getComputedStyle(root);
  const [quiet, rule] = ["--st-gray-text-color", "--st-border-color"].map((name) => style.getPropertyValue(name));
  return { text: style.color, quiet, rule, font: `12px ${style.fontFamily}` };
}

// A context in which one unit is one CSS pixel, whatever the screen's own pixels are.
function paper(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  Object.assign(canvas, { width: Math.round(width * ratio), height: Math.round(height * ratio) });
  Object.assign(canvas.style, { width: `${width}px`, height: `${height}px` });
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.textBaseline = "middle";
  return context;
}

function rule(context, x0, y0, x1, y1) {
  const sharp = (value) => Math.floor(value) + 0.5;
  context.beginPath();
  context.moveTo(x0 === x1 ? sharp(x0) : x0, y0 === y1 ? sharp(y0) : y0);
  context.lineTo(x0 === x1 ? sharp(x1) : x1, y0 === y1 ? sharp(y1) : y1);
  context.stroke();
}

// The least of 1, 2, 5, 10, 20 ... (and of their tenths) that is no less than this.
function roundStep(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= least * 0.9999) ?? 10 * power;
}

function drawTitles(context, plot, [across, down], inks) {
  context.fillStyle = inks.quiet;
  context.textAlign = "center";
  context.fillText(across, plot.left + plot.width / 2, plot.top + plot.height + 31, plot.width);
  context.save();
  context.translate(9, plot.top + plot.height / 2);
  context.rotate(-Math.PI / 2);
  context.fillText(down, 0, 0, plot.height);
  context.restore();
}
