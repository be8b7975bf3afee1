const LARGEST = 46; // pixels of a cell
const SMALLEST = 9; // of a cell whose label can still be read; below it the figure scrolls
const TALLEST = 640; // of a matrix whose cells could also be smaller
const NUMBERED = 30; // of a cell that holds its number
const MOST_NUMBERED = 20; // rows or columns
const MASKED = 1;
const WEAK = 2;
const FORBIDDEN = 3; // by a switch
const HELD_MS = 4000;
const FADE_MS = 120; // from one look at a run at work to the next
const FRAME_MS = 30; // of a fade: each picture of it costs a training beside it

export default live(function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  if (data.live && root._renew?.(data)) return;
  cancelAnimationFrame(root._fading);
  root._renew = renew;
  const had = root.contains(parentElement.getRootNode().activeElement) ? root._at : null;
  root._observer?.disconnect();
  setKindColours(root, data.colours);
  root.classList.toggle("off", data.off);
  const dark = isDark(root);
  const theme = dark ? "dark" : "light";
  root.style.setProperty("--masked", data.masked[theme]);
  const [height, width] = data.shape;
  let values = new Float32Array(bytes(data.values).buffer);
  const shown = Float32Array.from(values); // on the way to the values, while they fade
  const state = data.state && bytes(data.state);
  const largest = data.largest && new Float32Array(bytes(data.largest).buffer);
  const targets = data.targets && new Int16Array(bytes(data.targets).buffer);
  const scale = rampOf(data.scales[theme]);
  const fills = scale.map(css);
  const inks = scale.map((colour) => inkOn(colour, data.inks));

  const parts = Object.fromEntries(
    ["frame", "corner", "columns", "rows", "cells", "across", "down", "tip"].map((name) => [name, box(name)]),
  );
  const canvas = document.createElement("canvas");
  const cursor = box("cursor");
  const chosen = box("chosen");
  const spoken = box("spoken");
  spoken.setAttribute("aria-live", "polite");
  canvas.tabIndex = 0;
  canvas.setAttribute("role", "img");
  const pressed = data.forbids ? SAID.head_matrix.move_and_forbid : SAID.head_matrix.move_and_choose;
  canvas.setAttribute("aria-label", `${data.label}. ${data.unclickable ? SAID.head_matrix.move : pressed}`);
  parts.across.textContent = data.titles[1];
  parts.down.textContent = data.titles[0];
  const names = { row: data.rows.map((token) => name(token, parts.rows)), column: data.columns.map((token) => name(token, parts.columns)) };
  parts.corner.append(parts.down, parts.across);
  parts.cells.append(canvas, chosen, cursor);
  parts.frame.append(parts.corner, parts.columns, parts.rows, parts.cells);
  const title = box("title");
  title.textContent = data.title;
  title.hidden = !data.title;
  root.replaceChildren(title, legend(), parts.frame, parts.tip, spoken);
  parts.tip.hidden = cursor.hidden = true;
  chosen.hidden = !data.chosen;

  let cell = LARGEST;
  let wide = 0;
  place();
  root._observer = new ResizeObserver(() => root.clientWidth !== wide && place());
  root._observer.observe(root);
  canvas.onmousemove = (event) => point(under(event));
  canvas.onmouseleave = () => point(null);
  canvas.onclick = (event) => pick(under(event));
  canvas.onfocus = () => canvas.matches(":focus-visible") && point(root._at ?? data.chosen ?? [0, 0], true);
  canvas.onblur = () => point(null);
  canvas.onkeydown = move;
  canvas.classList.toggle("still", Boolean(data.unclickable));
  if (had) {
    root._at = had;
    canvas.focus({ preventScroll: true });
  }

  // The same cells with other values and names: their colours fade into each other, and nothing is built anew.
  function renew(next) {
    const same = (name) => JSON.stringify(next[name]) === JSON.stringify(data[name]);
    if (!["shape", "state", "off", "top", "titles", "colours", "unclickable", "forbids", "chosen"].every(same)) return false;
    const longest = (tokens) => Math.max(...tokens.map((token) => [...token.text].length));
    const room = data.steady ? Math.max(longest(data.rows), longest(data.columns)) : 0;
    const fits = (side) => longest(next[side]) === longest(data[side]) || (side === "rows" && longest(next.rows) <= room);
    if (!["rows", "columns"].every(fits)) return false;
    if (!root.isConnected || dark !== isDark(root)) return false;
    data = next;
    title.textContent = data.title;
    for (const side of ["row", "column"])
      names[side].forEach((element, index) => fillToken(element, data[`${side}s`][index]));
    const from = Float32Array.from(shown);
    values = new Float32Array(bytes(data.values).buffer);
    cancelAnimationFrame(root._fading);
    const begin = performance.now();
    const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
    let painted = -FRAME_MS;
    const fade = (now) => {
      const share = still ? 1 : Math.min(1, Math.max(0, (now - begin) / FADE_MS));
      if (share === 1 || now - painted >= FRAME_MS) {
        for (let i = 0; i < values.length; i++) shown[i] = from[i] + (values[i] - from[i]) * share;
        painted = now;
        paint();
      }
      if (share < 1) root._fading = requestAnimationFrame(fade);
    };
    fade(begin);
    return true;
  }

  function box(className) {
    const element = document.createElement("div");
    element.className = className;
    return element;
  }

  function name(token, side) {
    const element = document.createElement("span");
    fillToken(element, token);
    side.append(element);
    return element;
  }

  function legend() {
    const element = box("legend");
    const bar = box("bar");
    bar.style.background = `linear-gradient(to right, ${fills.filter((_, i) => i % 15 === 0).join(", ")})`;
    const ends = box("ends");
    for (const text of ["0", data.top_label]) ends.append(Object.assign(document.createElement("span"), { textContent: text }));
    const ruler = box("ruler");
    ruler.append(bar, ends);
    element.append(ruler, sample("", data.quantity));
    if (state?.includes(MASKED)) element.append(sample("masked", SAID.head_matrix.legend_masked));
    if (state?.includes(FORBIDDEN)) element.append(sample("forbidden", SAID.head_matrix.legend_forbidden));
    if (state?.includes(WEAK)) element.append(sample("weak", data.weak_label));
    return element;
  }

  function sample(className, text) {
    const element = box("sample");
    if (className) element.append(box(`swatch ${className}`));
    element.append(text);
    return element;
  }

  // Sizes: square cells as large as the width allows, labels as large as the cells.
  function place() {
    wide = root.clientWidth;
    const widest = (side) => Math.max(...names[side].map((element) => [...element.textContent].length), 1);
    const letters = { row: Math.min(18, widest("row")), column: Math.min(18, widest("column")) };
    if (data.steady) letters.row = Math.max(letters.row, letters.column);
    const rows = data.steady ? Math.max(width, height) : height;
    cell = LARGEST;
    for (let round = 0; round < 3; round++) {
      const left = 30 + letters.row * 0.6 * sizeOf(cell);
      cell = Math.max(SMALLEST, Math.min(LARGEST, (wide - left - 4) / width, Math.max(20, TALLEST / rows)));
    }
    if (cell > 12) cell = Math.floor(cell);
    const size = sizeOf(cell);
    const lies = letters.column * 0.6 * size < cell - 4;
    root.style.setProperty("--size", `${size}px`);
    root.style.setProperty("--cell", `${cell}px`);
    root.style.setProperty("--left", `${Math.ceil(30 + letters.row * 0.6 * size)}px`);
    root.style.setProperty("--top", `${Math.ceil(26 + (lies ? 1.3 * size : letters.column * 0.6 * size + 4))}px`);
    parts.columns.classList.toggle("lying", lies);
    parts.columns.style.width = parts.cells.style.width = `${width * cell}px`;
    parts.rows.style.height = parts.cells.style.height = `${height * cell}px`;
    names.row.forEach((element, index) => (element.style.top = `${index * cell}px`));
    names.column.forEach((element, index) => (element.style.left = `${index * cell}px`));
    parts.across.classList.toggle("short", width * cell < 190);
    parts.down.classList.toggle("short", height * cell < 190);
    parts.across.textContent = titleFor(data.titles[1], width * cell);
    parts.down.textContent = titleFor(data.titles[0], height * cell);
    if (data.chosen) frameAt(chosen, data.chosen);
    paint();
  }

  function titleFor(title, room) {
    return room > title.length * 6.6 ? title : title.split(":")[0];
  }

  function sizeOf(cell) {
    return Math.max(8, Math.min(14, cell * 0.8));
  }

  function paint() {
    const ratio = window.devicePixelRatio || 1;
    const size = [width, height].map((cells) => Math.round(cells * cell * ratio));
    const context = canvas.getContext("2d");
    if (canvas.width !== size[0] || canvas.height !== size[1]) {
      [canvas.width, canvas.height] = size;
      canvas.style.width = `${width * cell}px`;
      canvas.style.height = `${height * cell}px`;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width * cell, height * cell);
    const gap = cell >= 12 ? 1 : 0;
    const style = getComputedStyle(root);
    const numbered = cell >= NUMBERED && Math.max(width, height) <= MOST_NUMBERED;
    context.textAlign = "center";
    context.textBaseline = "middle";
    context.font = `${cell < 36 ? 11 : 12}px ${style.fontFamily}`;
    for (let row = 0; row < height; row++) {
      for (let column = 0; column < width; column++) {
        const index = row * width + column;
        const [x, y, side] = [column * cell + gap / 2, row * cell + gap / 2, cell - gap];
        const kind = state ? state[index] : 0;
        if (kind === WEAK) continue;
        const level = levelOf(shown[index]); // the number is that of the pass at once
        const closed = kind === MASKED || kind === FORBIDDEN || Number.isNaN(values[index]);
        context.fillStyle = closed ? data.masked[theme] : fills[level];
        context.fillRect(x, y, side, side);
        if (kind === MASKED) stroke(context, x, y, side);
        else if (kind === FORBIDDEN) cross(context, x, y, side);
        else if (numbered && !Number.isNaN(values[index])) {
          context.fillStyle = inks[level];
          context.globalAlpha = Math.abs(values[index]) < 0.005 ? 0.45 : 1;
          context.fillText(short(values[index]), x + side / 2, y + side / 2 + 0.5);
          context.globalAlpha = 1;
        }
      }
    }
  }

  function stroke(context, x, y, side) {
    if (side < 7) return;
    context.strokeStyle = data.quiet[theme];
    context.globalAlpha = 0.55;
    context.lineWidth = 0.6;
    context.beginPath();
    context.moveTo(x + side * 0.27, y + side * 0.73);
    context.lineTo(x + side * 0.73, y + side * 0.27);
    context.stroke();
    context.globalAlpha = 1;
  }

  function cross(context, x, y, side) {
    const inset = side < 7 ? 0 : side * 0.3;
    context.strokeStyle = data.colours[theme];
    context.lineWidth = side < 14 ? 1 : 1.75;
    context.beginPath();
    context.moveTo(x + inset, y + inset);
    context.lineTo(x + side - inset, y + side - inset);
    context.moveTo(x + side - inset, y + inset);
    context.lineTo(x + inset, y + side - inset);
    context.stroke();
  }

  function levelOf(value) {
    return Math.round(255 * Math.min(1, Math.max(0, data.top ? value / data.top : 0)) || 0);
  }

  function under(event) {
    const frame = canvas.getBoundingClientRect();
    const [row, column] = [Math.floor((event.clientY - frame.top) / cell), Math.floor((event.clientX - frame.left) / cell)];
    return row >= 0 && row < height && column >= 0 && column < width ? [row, column] : null;
  }

  function frameAt(element, [row, column]) {
    Object.assign(element.style, { left: `${column * cell}px`, top: `${row * cell}px` });
  }

  function point(at, aloud = false) {
    for (const element of root.querySelectorAll(".pointed")) element.classList.remove("pointed");
    cursor.hidden = parts.tip.hidden = !at;
    if (!at) return;
    names.row[at[0]].classList.add("pointed");
    names.column[at[1]].classList.add("pointed");
    frameAt(cursor, at);
    const lines = describe(...at);
    parts.tip.replaceChildren(...lines.map((words) => {
      const line = box("line");
      line.append(...words);
      return line;
    }));
    const [own, frame] = [root.getBoundingClientRect(), canvas.getBoundingClientRect()];
    const x = frame.left - own.left + (at[1] + 1) * cell + 8;
    const fits = x + parts.tip.offsetWidth < own.width;
    const left = fits ? x : Math.max(0, x - parts.tip.offsetWidth - cell - 16);
    parts.tip.style.left = `${left}px`;
    parts.tip.style.top = `${frame.top - own.top + at[0] * cell}px`;
    if (aloud) spoken.textContent = lines.map((words) => words.map((word) => word.textContent ?? word).join("")).join("; ");
  }

  function describe(row, column) {
    const index = row * width + column;
    const lines = [
      [`${data.names[0]} `, bold(data.rows[row].full), `, ${data.row_notes[row]}`],
      [`${data.names[1]} `, bold(data.columns[column].full), data.column_notes[column] ? `, ${data.column_notes[column]}` : ""],
    ];
    const value = values[index];
    const most = largest && `${Number(largest[index].toPrecision(4))} ${data.unit}`;
    const bound = most ? ` ${filled(SAID.head_matrix.largest, { most })}` : "";
    lines.push([Number.isNaN(value) ? filled(SAID.head_matrix.none, data) : `${data.quantity} ${exact(value)}${bound}`]);
    if (state?.[index] === MASKED) lines.push([SAID.head_matrix.masked]);
    if (state?.[index] === FORBIDDEN) lines.push([data.forbids ? SAID.head_matrix.allow : SAID.head_matrix.forbidden]);
    if (state?.[index] === WEAK) lines.push([filled(SAID.head_matrix.not_drawn, { why: data.weak_label })]);
    return lines;
  }

  function pick(at) {
    if (!at || data.unclickable) return;
    root._at = at;
    if (data.forbids && state?.[at[0] * width + at[1]] === MASKED) return; // nothing is left to forbid
    const index = (at[0] * width + at[1]) * 4;
    if (data.forbids) hold(root);
    setTriggerValue(data.forbids ? "forbidden" : "picked", [...targets.slice(index, index + 4)]);
  }

  function move(event) {
    const [row, column] = root._at ?? data.chosen ?? [0, 0];
    const goals = {
      ArrowLeft: [row, column - 1],
      ArrowRight: [row, column + 1],
      ArrowUp: [row - 1, column],
      ArrowDown: [row + 1, column],
      Home: [row, 0],
      End: [row, width - 1],
      Enter: [row, column],
      " ": [row, column],
    };
    const goal = goals[event.key];
    if (!goal) return;
    event.preventDefault();
    if (event.key === "Enter" || event.key === " ") return pick(goal);
    root._at = [Math.min(height - 1, Math.max(0, goal[0])), Math.min(width - 1, Math.max(0, goal[1]))];
    point(root._at, true);
  }
});

// What a switch did is said above the matrix; the page scrolls with it, so that the next cell is where the pointer is.
function hold(root) {
  const main = document.querySelector("[data-testid=stMain]");
  const place = () => root.querySelector("canvas")?.getBoundingClientRect().top;
  const [top, until, own] = [place(), performance.now() + HELD_MS, new AbortController()];
  for (const gesture of ["wheel", "touchstart", "pointerdown", "keydown"])
    window.addEventListener(gesture, () => own.abort(), { capture: true, signal: own.signal, passive: true });
  const follow = () => {
    if (own.signal.aborted || performance.now() > until) return own.abort();
    const moved = place() - top;
    if (Math.abs(moved) >= 1) main.scrollTop += moved;
    requestAnimationFrame(follow);
  };
  if (main) requestAnimationFrame(follow);
}

function css(colour) {
  return `rgb(${colour.join(" ")})`;
}

function inkOn(colour, inks) {
  const [red, green, blue] = colour.map((part) => (part / 255) ** 2.2);
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.2 ? inks[0] : inks[1];
}

function short(value) {
  if (Math.abs(value) < 0.005) return "0";
  return value >= 10 ? value.toPrecision(3) : value.toFixed(2);
}

function bold(text) {
  const element = document.createElement("b");
  const isolated = document.createElement("bdi");
  isolated.textContent = text;
  element.append(isolated);
  return element;
}
