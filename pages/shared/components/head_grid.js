export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  const focused = root._at && parentElement.activeElement ? root._at : null;
  setKindColours(root, data.colours);
  const [layers, heads, queries, keys] = data.shape;
  const dark = isDark(root);
  const scale = Uint32Array.from(rampOf(data.scales[dark ? "dark" : "light"]), pixelOf);
  const masked = pixelOf(channels(data.masked[dark ? "dark" : "light"]));
  const weights = bytes(data.weights);
  const mask = data.mask && bytes(data.mask);
  const marks = new Map([
    ...data.off.map((at) => [String(at), { short: "off", long: "switched off" }]),
    ...data.at_mean.map((at) => [String(at), { short: "mean", long: "at its mean" }]),
  ]);

  const grid = document.createElement("div");
  grid.className = "grid";
  grid.setAttribute("role", "grid");
  grid.setAttribute("aria-label", `${data.label}: layers and heads. Arrow keys move, Enter chooses.`);
  grid.style.gridTemplateColumns = `max-content repeat(${heads}, minmax(1rem, 5.5rem))`;
  grid.append(header());
  const cells = Array.from({ length: layers }, (_, layer) => {
    const row = document.createElement("div");
    row.className = "row";
    row.setAttribute("role", "row");
    row.append(name(`layer ${layer}`, "rowheader"));
    const buttons = Array.from({ length: heads }, (_, head) => row.appendChild(cell(layer, head)));
    grid.append(row);
    return buttons;
  });
  root.replaceChildren(grid);
  select(...data.selected);
  if (focused) cells[focused[0]]?.[focused[1]]?.focus();

  function header() {
    const row = document.createElement("div");
    row.className = "row";
    row.setAttribute("role", "row");
    row.append(name("head", "columnheader", "corner"));
    for (let head = 0; head < heads; head++) row.append(name(String(head), "columnheader", "column"));
    return row;
  }

  function name(text, role, place = "") {
    const element = document.createElement("div");
    element.className = `name ${place}`;
    element.setAttribute("role", role);
    element.textContent = text;
    return element;
  }

  function cell(layer, head) {
    const button = document.createElement("button");
    button.type = "button";
    button.setAttribute("role", "gridcell");
    const mark = marks.get(String([layer, head]));
    button.classList.toggle("off", Boolean(mark));
    button.setAttribute("aria-label", `layer ${layer}, head ${head}${mark ? `, ${mark.long}` : ""}`);
    button.title = `layer ${layer}, head ${head}${mark ? `, ${mark.long}` : ""}`;
    button.append(thumbnail(layer, head));
    if (mark) {
      const sign = document.createElement("span");
      sign.textContent = mark.short;
      sign.setAttribute("aria-hidden", "true");
      button.append(sign);
    }
    button.onclick = () => {
      root._at = [layer, head];
      select(layer, head);
      setTriggerValue("picked", [layer, head]);
    };
    button.onfocus = () => (root._at = [layer, head]);
    button.onblur = () => (root._at = null);
    button.onkeydown = (event) => move(event, layer, head);
    return button;
  }

  function thumbnail(layer, head) {
    const size = queries * keys;
    const start = (layer * heads + head) * size;
    const canvas = pixelCanvas(queries, keys, (index) => {
      const allowed = !mask || mask[layer * size + index];
      return allowed ? scale[weights[start + index]] : masked;
    });
    canvas.style.aspectRatio = Math.min(2, Math.max(1 / 2, data.aspect)); // cells of a very long side are flat
    return canvas;
  }

  function select(layer, head) {
    cells.forEach((row, a) =>
      row.forEach((button, b) => {
        const chosen = a === layer && b === head;
        button.setAttribute("aria-selected", String(chosen));
        button.tabIndex = chosen ? 0 : -1;
      }),
    );
  }

  function move(event, layer, head) {
    const goals = {
      ArrowLeft: [layer, head - 1],
      ArrowRight: [layer, head + 1],
      ArrowUp: [layer - 1, head],
      ArrowDown: [layer + 1, head],
      Home: [layer, 0],
      End: [layer, heads - 1],
    };
    const goal = goals[event.key];
    if (!goal) return;
    event.preventDefault();
    cells[goal[0]]?.[goal[1]]?.focus();
  }
}
