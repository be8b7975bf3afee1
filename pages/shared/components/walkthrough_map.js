// The architecture. Geometry comes from the page; here it is only drawn, clicked and walked through with arrow keys.
const SVG = "http://www.w3.org/2000/svg";

export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  const hadFocus = Boolean(root._walking && parentElement.activeElement);
  const scrolled = root.scrollTop;
  root._at = data.chosen;

  const drawing = make("svg", { viewBox: `0 0 ${data.width} ${data.height}`, role: "group", "aria-label": data.label });
  data.frames.forEach(drawFrame);
  data.lines.forEach(drawLine);
  data.boxes.forEach(drawBox);
  root.replaceChildren(drawing);
  moveNumbers(root, drawing, data);
  play(root, parentElement.querySelector(".bar"), data, pick);
  root.scrollTop = scrolled;
  const chosen = drawing.querySelector(".chosen");
  if (chosen) {
    showIt(chosen);
    if (hadFocus) {
      chosen.focus({ preventScroll: true });
      root._walking = true;
    }
  }

  function index(step) {
    return data.order.findIndex(([name]) => name === step);
  }

  function pick(step) {
    const found = data.order[index(step)];
    if (!found) return;
    root._at = step;
    setTriggerValue("picked", found);
  }

  // Several presses may come before the answer to the first: each goes on from where the last one led.
  function move(event) {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    const last = data.order.length - 1;
    let goal = null;
    if (step) goal = Math.min(last, Math.max(0, index(root._at) + step));
    else if (event.key === "Home") goal = 0;
    else if (event.key === "End") goal = last;
    else if (event.key === "Enter" || event.key === " ") goal = index(event.currentTarget.dataset.step);
    if (goal === null || goal < 0) return;
    event.preventDefault();
    if (data.order[goal][0] === root._at && event.key.startsWith("Arrow")) return;
    root._walking = true;
    pick(data.order[goal][0]);
  }

  function drawFrame({ x, y, w, h, label, sheets, kind }) {
    for (let sheet = sheets; sheet >= 0; sheet--) {
      const shift = 3 * sheet;
      const shape = make("rect", { x: x + shift, y: y - shift, width: w, height: h, rx: 8 });
      shape.classList.add("frame");
      if (label) shape.classList.add("block");
      paint(shape, kind);
      drawing.append(shape);
    }
    if (!label) return;
    const title = make("text", { x: x + w / 2, y: y + 12 });
    title.classList.add("title");
    title.textContent = label;
    paint(title, kind);
    drawing.append(title);
  }

  function drawLine({ points, kind, arrow }) {
    const path = make("path", { d: `M${points.map((point) => point.join(",")).join("L")}` });
    path.classList.add("line");
    paint(path, kind);
    drawing.append(path);
    if (!arrow) return;
    const [[x0, y0], [x1, y1]] = points.slice(-2);
    const length = Math.hypot(x1 - x0, y1 - y0) || 1;
    const [ux, uy] = [(x1 - x0) / length, (y1 - y0) / length];
    const corners = [
      [x1, y1],
      [x1 - 6 * ux - 3 * uy, y1 - 6 * uy + 3 * ux],
      [x1 - 6 * ux + 3 * uy, y1 - 6 * uy - 3 * ux],
    ];
    const head = make("path", { d: `M${corners.map((corner) => corner.join(",")).join("L")}Z` });
    head.classList.add("head");
    paint(head, kind);
    drawing.append(head);
  }

  function drawBox(box) {
    const group = make("g", { role: box.ghost ? "img" : "button", "aria-label": box.spoken });
    group.classList.add("box", box.shape);
    group.classList.toggle("ghost", box.ghost);
    group.classList.toggle("folded", box.folded);
    group.classList.toggle("chosen", box.chosen);
    paint(group, box.kind);
    const radius = box.shape === "pill" ? box.h / 2 : 5;
    group.append(make("rect", { x: box.x, y: box.y, width: box.w, height: box.h, rx: radius }));
    const label = make("text", { x: box.x + box.w / 2, y: box.y + box.h / 2 + 0.5 });
    label.textContent = box.label;
    group.append(label);
    const tip = make("title", {});
    tip.textContent = [box.spoken, ...box.switched].join("\n");
    group.append(tip);
    if (box.switched.length) {
      const flag = make("circle", { cx: box.x + box.w - 2, cy: box.y + 2, r: 5.5 });
      flag.classList.add("flag");
      group.append(flag);
    }
    if (!box.ghost) {
      group.dataset.step = box.step;
      group.setAttribute("tabindex", box.chosen ? "0" : "-1");
      if (box.chosen) group.setAttribute("aria-current", "step");
      group.onclick = () => {
        root._walking = true;
        pick(box.step);
      };
      group.onkeydown = move;
      group.onblur = () => (root._walking = false);
    }
    drawing.append(group);
  }

  function paint(element, kind) {
    if (!kind) return;
    const { light, dark } = data.colours[kind];
    element.style.setProperty("--kind", `light-dark(${light}, ${dark})`);
  }

  // The chosen step is in sight within the map's own frame; the page itself does not move.
  function showIt(element) {
    const inner = element.getBoundingClientRect();
    const outer = root.getBoundingClientRect();
    if (inner.top < outer.top + 24) root.scrollTop -= outer.top + 24 - inner.top;
    else if (inner.bottom > outer.bottom - 24) root.scrollTop += inner.bottom - outer.bottom + 24;
  }
}

function make(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  return element;
}
