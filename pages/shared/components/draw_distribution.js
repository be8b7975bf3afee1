// A step's distribution as bars beside the settings that reshape it, drawn anew at every movement of a slider.
// The server learns the settings when a slider is let go of.

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".root");
  const news = unpack(data);
  const state = (root._state ??= build(root, news));
  const { ids, tokens, never, arrays } = news;
  Object.assign(state, { ids, tokens, never, own: arrays[0], tell: setStateValue });
  state.allowed = arrays.map((scores) => scores.with(never, -Infinity));
  // What the server says meanwhile of settings that are older than those on the screen does not move the sliders.
  if (!state.moved && [null, state.report].includes(news.report)) state.settings = news.settings;
  state.table.setAttribute("aria-label", news.label);
  draw(state);
}

function build(root, { sliders, settings, report }) {
  const state = { settings, report, moved: false, held: false, fields: sliders.map(field) };
  for (const { name, input } of state.fields) listen(state, name, input);
  const settingsBox = make("settings");
  settingsBox.append(...state.fields.map(({ box }) => box));
  state.table = make("", "table");
  state.said = make("said", "p");
  state.said.setAttribute("role", "status");
  root.replaceChildren(settingsBox, state.table, state.said);
  return state;
}

function field({ name, label, low, high, step }) {
  const [box, line, named, value] = [make("setting"), make("line"), make("name", "span"), make("value", "span")];
  const input = Object.assign(make("slider", "input"), { type: "range", min: low, max: high, step });
  input.setAttribute("aria-label", label);
  named.textContent = label;
  line.setAttribute("aria-hidden", "true");
  line.append(named, value);
  box.append(line, input);
  const digits = String(step).split(".")[1]?.length ?? 0;
  return { name, box, input, value, low, high, digits };
}

function listen(state, name, input) {
  input.oninput = () => {
    state.settings = { ...state.settings, [name]: Number(input.value) };
    state.moved = true;
    draw(state);
  };
  input.onchange = () => commit(state);
  // The page's own keys (arrows step) are not meant while a slider has them, and a held key is one movement.
  input.onkeydown = (event) => {
    event.stopPropagation();
    state.held = true;
  };
  input.onkeyup = input.onblur = () => {
    state.held = false;
    commit(state);
  };
}

function commit(state) {
  if (!state.moved || state.held) return;
  state.moved = false;
  state.report = Date.now();
  state.tell("settings", { ...state.settings, report: state.report });
}

function draw(state) {
  for (const one of state.fields) showSetting(one, state.settings[one.name]);
  const drawn = state.allowed.map((scores) => reshaped(scores, state.settings));
  const columns = [drawn[0].logProbs, state.own, ...drawn.slice(1).map(({ logProbs }) => logProbs)];
  const rows = state.ids.map((id, place) => {
    const why = id === state.never ? "never drawn" : drawn[0].cut[id] && `cut: ${drawn[0].cut[id]}`;
    return row(state.tokens[place], columns.map((column) => Math.exp(column[id])), why);
  });
  const others = state.own.length - state.ids.length;
  if (others) rows.push(row(`${others.toLocaleString("en")} other${others > 1 ? "s" : ""}`, columns.map((column) => rest(column, state.ids)), ""));
  const body = make("", "tbody");
  body.append(...rows);
  state.table.replaceChildren(head(columns.length > 2), body);
  state.said.textContent = summary(drawn[0].logProbs);
}

function showSetting({ name, input, value, digits }, now) {
  const text = now.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: 4 });
  value.textContent = name === "top_k" && !now ? "all" : text;
  if (Number(input.value) !== now) input.value = now;
  input.setAttribute("aria-valuetext", value.textContent);
}

function head(compared) {
  const line = make("", "tr");
  line.append(cell("th", "", "token"), axis(), named("drawn", "drawn"), named("model", "model"));
  if (compared) line.append(named("usual", "unswitched"));
  const top = make("", "thead");
  top.append(line);
  return top;
}

function named(sample, text) {
  const box = cell("th", "number", text);
  box.prepend(make(`sample ${sample}`, "i"));
  return box;
}

function axis() {
  const [box, line] = [cell("td", "bars"), make("axis")];
  box.setAttribute("aria-hidden", "true");
  line.append(...["0", "0.5", "1"].map((text) => cell("span", "", text)));
  box.append(line);
  return box;
}

// Probabilities: drawn from, the model's own and, under switches, drawn from without them.
function row(token, [drawn, own, usual], why) {
  const line = make(why ? "cut" : "", "tr");
  const name = cell("th", "");
  name.scope = "row";
  if (typeof token === "string") name.append(token);
  else fillToken(name, token);
  const [bars, track] = [cell("td", "bars"), make("track")];
  track.setAttribute("aria-hidden", "true");
  track.append(bar("model", own), bar("drawn", drawn));
  if (usual !== undefined) {
    const mark = make("usual");
    mark.style.left = `${100 * usual}%`;
    track.append(mark);
  }
  bars.append(track);
  if (why) bars.append(cell("span", "why", why));
  line.append(name, bars, number(drawn), number(own));
  if (usual !== undefined) line.append(number(usual));
  return line;
}

function bar(kind, share) {
  const made = make(`bar ${kind}`);
  made.style.width = `${100 * Math.min(1, share)}%`;
  return made;
}

function number(p) {
  const made = cell("td", "number", digits(p));
  made.title = String(p);
  return made;
}

function cell(name, className, text = "") {
  return Object.assign(make(className, name), { textContent: text });
}

function rest(logProbs, ids) {
  const shown = new Set(ids);
  return logProbs.reduce((sum, value, token) => (shown.has(token) ? sum : sum + Math.exp(value)), 0);
}

function summary(logProbs) {
  const left = logProbs.filter((value) => value > -Infinity);
  const entropy = left.reduce((sum, value) => sum - Math.exp(value) * value, 0);
  const count = left.length.toLocaleString("en");
  return `${count} of ${logProbs.length.toLocaleString("en")} tokens can be drawn; entropy ${digits(Math.max(0, entropy))} nats.`;
}

function digits(value) {
  if (!value) return "0";
  return value >= 1e-4 ? value.toPrecision(3) : value.toExponential(0).replace("-", "−");
}
