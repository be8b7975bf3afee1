// The film: what is on show, the slider and the clock. The frames are all here; only what was chosen goes to the server.
const SPEEDS = [0.5, 1, 2, 4], FRAMES_A_SECOND = 5;
const PLAY = "M8 5v14l11-7z", PAUSE = "M6 5h4v14H6zm8 0h4v14h-4z";

export default function ({ data, parentElement, setStateValue, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  const film = (root._film ??= build(root));
  film.report = setStateValue;
  film.pick = (layer, head) => {
    film.selected = [layer, head];
    select(film);
    setTriggerValue("picked", [layer, head]);
  };
  take(film, data);
}

function part(name, className, attributes = {}) {
  const element = document.createElement(name);
  element.className = className;
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}

function build(root) {
  const film = { root, index: 0, wanted: null, playing: false, name: null, order: null, thumbnails: [] };
  film.now = part("div", "now");
  film.step = part("span", "step", { "data-testid": "film-step" });
  film.said = part("p", "said", { "data-testid": "film-said" });
  film.now.append(film.step, film.said);

  film.canvas = part("canvas", "head");
  film.caption = part("figcaption", "");
  const large = part("figure", "large"), scroll = part("div", "scroll");
  scroll.append(film.canvas);
  large.append(film.caption, scroll);
  film.grid = part("div", "grid", { role: "grid" });
  const overview = part("figure", "overview"), named = part("figcaption", "");
  film.gridName = named;
  overview.append(named, film.grid);
  film.pictures = part("div", "pictures");
  film.pictures.append(large, overview);

  film.play = part("button", "play", { type: "button" });
  film.icon = svgElement("svg", { viewBox: "0 0 24 24", width: 22, height: 22, "aria-hidden": "true" });
  film.icon.append(svgElement("path", { d: PLAY }));
  film.play.append(film.icon);
  film.slider = part("input", "slider", { type: "range", min: 0, step: 1, "aria-label": "Training step" });
  film.speed = part("button", "speed", { type: "button", title: "Speed of the film" });
  film.speedAt = 1;
  film.transport = part("div", "transport");
  film.transport.append(film.play, film.slider);

  film.loss = { svg: svgElement("svg", { "aria-hidden": "true" }), legend: part("div", "legend") };
  const loss = part("div", "strip");
  loss.append(film.loss.svg);
  film.heads = {
    box: part("div", "strip"), svg: svgElement("svg", { "aria-hidden": "true" }), canvas: part("canvas", "lines"),
    title: part("span", "title"), value: part("span", "value"),
  };
  const lines = part("div", "stack");
  const header = part("div", "legend");
  header.append(film.heads.title, film.heads.value);
  lines.append(film.heads.canvas, film.heads.svg);
  film.heads.box.append(header, lines);
  const above = part("div", "legend above");
  above.append(film.loss.legend, film.speed);
  film.note = part("p", "note");
  root.replaceChildren(film.now, film.pictures, film.transport, above, loss, film.heads.box, film.note);
  listen(film);
  return film;
}

function listen(film) {
  film.play.onclick = () => (film.playing ? pause(film) : play(film));
  film.slider.oninput = () => {
    stop(film);
    show(film, Number(film.slider.value));
    film.wanted = film.steps[film.index]; // data that come while it is dragged leave it there
  };
  film.slider.onchange = () => commit(film);
  film.speed.onclick = () => {
    film.speedAt = (film.speedAt + 1) % SPEEDS.length;
    nameSpeed(film);
  };
  film.canvas.onpointermove = (event) => nameHead(film, cellAt(film, film.index, event, film.canvas));
  film.canvas.onpointerleave = () => nameHead(film);
  for (const svg of [film.loss.svg, film.heads.svg]) {
    let down = null;
    svg.onpointerdown = (event) => {
      down = event.clientX;
      svg.setPointerCapture(event.pointerId);
      stop(film);
      show(film, placeAt(film, event, svg));
    };
    svg.onpointermove = (event) => {
      if (down !== null) return show(film, placeAt(film, event, svg));
      const head = svg === film.heads.svg && headAt(film, event);
      if (head) sayHead(film, head, placeAt(film, event, svg));
    };
    svg.onpointerup = (event) => {
      const head = svg === film.heads.svg && down !== null && Math.abs(event.clientX - down) < 4 && headAt(film, event);
      down = null;
      commit(film);
      if (head) film.pick(...head);
    };
    svg.onpointercancel = () => (down = null);
    svg.onpointerleave = () => down === null && film.data && markHeads(film, film.index);
  }
  film.grid.onkeydown = (event) => {
    const by = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] }[event.key];
    const at = film.thumbnails.findIndex(({ button }) => button === event.target);
    if (!by || at < 0) return;
    event.preventDefault();
    const { layer, head } = film.thumbnails[at];
    film.thumbnails.find((t) => t.layer === layer + by[0] && t.head === head + by[1])?.button.focus();
  };
  new ResizeObserver(() => film.data && film.root.clientWidth !== film.seenWidth && redraw(film)).observe(film.root);
}

function take(film, data) {
  const another = film.name !== data.name;
  const moved = another || film.order !== data.order;
  const playedTo = film.playing && !another ? film.steps[film.index] : null;
  Object.assign(film, { data, name: data.name, order: data.order, selected: data.selected });
  film.steps = data.frames.map((frame) => frame.step);
  film.thumbs = bytes(data.thumbs);
  film.large = new Float32Array(bytes(data.large).buffer);
  film.offsets = filmOffsets(data);
  const last = film.steps.length - 1;
  if (another) stop(film);
  if (moved) film.wanted = data.at; // null: the newest, whatever its step; else kept until its frame is there
  film.index = nearest(film.steps, playedTo ?? film.wanted ?? film.steps[last]);
  film.slider.max = last;
  redraw(film);
}

function nearest(steps, wanted) {
  let best = 0;
  steps.forEach((step, i) => {
    if (Math.abs(step - wanted) < Math.abs(steps[best] - wanted)) best = i;
  });
  return best;
}

// Everything that depends on the data, the theme and the width; then the frame on show.
function redraw(film) {
  const { root, data } = film;
  const style = getComputedStyle(root);
  const theme = style.colorScheme.includes("dark") ? "dark" : "light";
  setKindColours(root, data.colours);
  film.ramp = filmRamp(data.scales[theme]);
  film.masked = filmChannels(data.masked[theme]);
  const probe = getComputedStyle(film.said);
  film.inks = { text: probe.color, quiet: getComputedStyle(film.note).color };
  film.font = `12px ${style.getPropertyValue("--st-code-font") || "monospace"}`;
  film.seenWidth = root.clientWidth;
  film.width = Math.max(260, root.clientWidth);
  film.pitch = (film.width - GUTTER - EDGE) / film.steps.length;
  film.shape = shapeOf(data);
  root.classList.toggle("narrow", film.width < 520);
  film.layout = layOut(film, film.width < 520 ? film.width : Math.floor(film.width * 0.58) - 12);
  film.slider.style.marginLeft = `${film.pitch / 2 - 8}px`;
  film.slider.style.width = `${film.pitch * (film.steps.length - 1) + 16}px`;
  film.play.disabled = film.slider.disabled = film.steps.length < 2;
  nameSpeed(film);
  nameControls(film);
  film.gridName.textContent = data.heads[0] * data.heads[1] === 1 ? "The only head" : `All heads · ${data.label}`;
  buildGrid(film);
  drawLoss(film);
  drawHeads(film);
  show(film, film.index);
}

// The rows that are drawn: as many as the sentence has tokens and a few more, or as the newest output has where that
// ended; so that the picture is as high at step 0, which may write without end, as at the last. Others are counted.
const SPARE_ROWS = 4, FEWEST_ROWS = 8, MOST_ROWS = 24;

function shapeOf({ frames, kind, sources }) {
  const last = frames.at(-1);
  const most = Math.max(...frames.map((frame) => frame.rows.length));
  const usual = Math.max(FEWEST_ROWS, sources + SPARE_ROWS, last.ended ? last.rows.length + 1 : 0);
  const rows = kind === "encoder_self" ? most : Math.min(MOST_ROWS, usual);
  return { rows, columns: kind === "decoder_self" ? rows : Math.max(...frames.map((frame) => frame.columns.length)) };
}

function buildGrid(film) {
  const [layers, heads] = film.data.heads;
  const size = `${layers}x${heads}`;
  film.grid.setAttribute("aria-label", `${film.data.label}: layers and heads. Arrow keys move, Enter chooses.`);
  if (film.grid.dataset.size !== size) {
    film.grid.dataset.size = size;
    film.grid.style.gridTemplateColumns = `max-content repeat(${heads}, minmax(1rem, ${Math.min(6, 21 / layers - 0.5)}rem))`;
    film.thumbnails = [];
    const header = part("div", "row", { role: "row" });
    header.append(name("", "columnheader"));
    for (let head = 0; head < heads; head++) header.append(name(head, "columnheader", "top"));
    film.grid.replaceChildren(header);
    for (let layer = 0; layer < layers; layer++) {
      const row = part("div", "row", { role: "row" });
      row.append(name(layer, "rowheader"));
      film.grid.append(row);
      for (let head = 0; head < heads; head++) {
        const title = `layer ${layer}, head ${head}`;
        const button = part("button", "thumb", { type: "button", role: "gridcell", title, "aria-label": title });
        const canvas = part("canvas", "");
        button.append(canvas);
        button.onclick = () => film.pick(layer, head);
        film.thumbnails.push({ button, canvas, layer, head });
        row.append(button);
      }
    }
  }
  select(film);
}

function name(text, role, place = "") {
  return Object.assign(part("span", `name ${place}`, { role }), { textContent: text });
}

function select(film) {
  for (const { button, layer, head } of film.thumbnails) {
    const chosen = layer === film.selected[0] && head === film.selected[1];
    button.setAttribute("aria-selected", String(chosen));
    button.tabIndex = chosen ? 0 : -1;
  }
}

function show(film, index) {
  film.index = index;
  const frame = film.data.frames[index];
  film.slider.value = index;
  film.slider.setAttribute("aria-valuetext", `step ${frame.step.toLocaleString("en")}`);
  film.step.textContent = `step ${frame.step.toLocaleString("en")}`;
  film.step.dataset.step = frame.step;
  sayWritten(film, frame);
  nameHead(film);
  drawLarge(film.canvas, film, index);
  for (const { canvas, layer, head } of film.thumbnails) drawThumbnail(canvas, film, index, layer, head);
  markLoss(film, index);
  markHeads(film, index);
  const hidden = frame.rows.length - film.shape.rows;
  film.note.textContent = hidden > 0 && film.data.kind !== "encoder_self"
    ? `The first ${film.shape.rows} of ${frame.length} rows${frame.ended ? "" : ": at this step it does not know where to end"}.` : "";
}

// The tokens in ink where they stand at this place in the newest output too, in grey where they do not.
function sayWritten(film, frame) {
  const spans = [];
  frame.written.forEach((index, at) => {
    const token = film.data.tokens[index];
    if (token.special && at === frame.length - 1 && frame.ended) return;
    if (at && frame.spaces[at]) spans.push(" ");
    const word = part("bdi", frame.stays[at] ? "stays" : "moves");
    word.textContent = token.text;
    spans.push(word);
  });
  if (frame.written.length < frame.length) {
    const more = part("span", "more");
    more.textContent = ` … ${frame.length - frame.written.length} more`;
    spans.push(more);
  }
  if (!spans.length) spans.push(Object.assign(part("em", ""), { textContent: "nothing" }));
  film.said.replaceChildren(...spans);
}

function nameHead(film, cell = "") {
  const [layer, head] = film.selected;
  film.caption.textContent = cell || `Layer ${layer}, head ${head} · rows look at columns`;
}

function nameSpeed(film) {
  film.speed.textContent = `${SPEEDS[film.speedAt]}×`;
  film.speed.setAttribute("aria-label", `Speed of the film: ${SPEEDS[film.speedAt]} times`);
}

function nameControls(film) {
  film.play.setAttribute("aria-label", film.playing ? "Pause the film" : "Play the film");
  film.icon.firstChild.setAttribute("d", film.playing ? PAUSE : PLAY);
}

function play(film) {
  if (film.index >= film.steps.length - 1) show(film, 0);
  film.playing = true;
  film.due = performance.now() + 1000 / FRAMES_A_SECOND;
  nameControls(film);
  const tick = (now) => {
    if (!film.playing) return;
    if (!film.root.isConnected) return stop(film);
    if (now >= film.due) {
      film.due = now + 1000 / (FRAMES_A_SECOND * SPEEDS[film.speedAt]);
      show(film, Math.min(film.index + 1, film.steps.length - 1));
      if (film.index >= film.steps.length - 1) return pause(film);
    }
    requestAnimationFrame(tick);
  };
  requestAnimationFrame(tick);
}

function stop(film) {
  film.playing = false;
  nameControls(film);
}

function pause(film) {
  stop(film);
  commit(film);
}

// The place goes to the server once the slider rests. At the newest weights it is no step: newer ones are followed.
function commit(film) {
  film.wanted = film.index === film.steps.length - 1 ? null : film.steps[film.index];
  film.report("at", { step: film.wanted, report: Date.now() });
}
