// Shared by the components that draw numbers: colours of a scale, and digits.

function channels(hex) {
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

function rampOf(stops) {
  const colours = stops.map(channels);
  return Array.from({ length: 256 }, (_, level) => {
    const at = (level / 255) * (colours.length - 1);
    const low = Math.min(Math.floor(at), colours.length - 2);
    return colours[low].map((value, index) => Math.round(value + (colours[low + 1][index] - value) * (at - low)));
  });
}

function isDark(element) {
  return getComputedStyle(element).colorScheme.includes("dark");
}

// The shortest digits that read back as this very float32.
function exact(value) {
  for (let digits = 1; digits < 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return String(Number(text));
  }
  return String(Number(value.toPrecision(9)));
}

// Red, green and blue as one opaque pixel of a canvas: every browser's machines keep the lowest byte first.
function pixelOf([red, green, blue]) {
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

// A canvas with a pixel for each cell, row by row.
function pixelCanvas(rows, columns, pixelAt) {
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  const context = canvas.getContext("2d");
  const image = context.createImageData(columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let index = 0; index < pixels.length; index++) pixels[index] = pixelAt(index);
  context.putImageData(image, 0, 0);
  return canvas;
}
