const SVG = "http://www.w3.org/2000/svg";
const READABLE = 0.72; // of a token's usual size
const SMALLEST = 0.52; // of the room around it, squared
const FAINTEST = 1 / 512; // a line of less opacity would change no pixel
const FADED = 40; // pixels of the edge behind which more stands, as in the style sheet
const AT_REST = matchMedia("(hover: none)").matches
  ? SAID.token_lines.tap
  : SAID.token_lines.point;
const SCROLLS = ` ${SAID.token_lines.scroll}`;

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  root._observer?.disconnect();
  setKindColours(root, data.colours);
  root.classList.toggle("off", data.off);
  const weights = new Float32Array(bytes(data.weights).buffer);

  const lines = document.createElementNS(SVG, "svg");
  lines.setAttribute("aria-hidden", "true");
  const rows = { source: row("source"), target: row("target") };
  const chips = { source: [...rows.source.children], target: [...rows.target.children] };
  const readout = document.createElement("div");
  readout.className = "readout";
  const paths = [];
  weights.forEach((weight, index) => {
    if (!(weight / data.top >= FAINTEST)) return;
    const path = lines.appendChild(document.createElementNS(SVG, "path"));
    const width = data.source.length;
    paths.push({ path, weight, source: index % width, target: Math.floor(index / width) });
  });
  root.replaceChildren(lines, label("source"), rows.source, rows.target, label("target"), readout);

  let pinned = null;
  let pointed = null;
  let said = null;
  show(null);
  root._observer = new ResizeObserver(place);
  root._observer.observe(root);
  root.onscroll = fade;
  root.onmouseleave = () => point(null);
  root.onfocusout = () => point(null);

  function label(side) {
    const element = document.createElement("div");
    element.className = "label";
    element.textContent = data.labels[side];
    return element;
  }

  function row(side) {
    const element = document.createElement("div");
    element.className = `row ${side}`;
    element.setAttribute("role", "toolbar");
    element.setAttribute("aria-label", filled(SAID.token_lines.tokens, { row: data.labels[side] }));
    data[side].forEach((token, index) => {
      const chip = document.createElement("button");
      chip.type = "button";
      chip.tabIndex = index === 0 ? 0 : -1;
      fillToken(chip, token);
      chip.setAttribute("aria-label", spokenWeights(side, index));
      chip.onmouseenter = () => point([side, index]);
      chip.onfocus = () => {
        [...element.children].forEach((other) => (other.tabIndex = other === chip ? 0 : -1));
        point([side, index]);
      };
      chip.onclick = () => {
        pinned = same(pinned, [side, index]) ? null : [side, index];
        show(pinned ?? pointed);
      };
      chip.onkeydown = (event) => move(event, side, index);
      element.append(chip);
    });
    return element;
  }

  function move(event, side, index) {
    const last = data[side].length - 1;
    const other = side === "source" ? "target" : "source";
    const goals = {
      ArrowLeft: [side, Math.max(0, index - 1)],
      ArrowRight: [side, Math.min(last, index + 1)],
      Home: [side, 0],
      End: [side, last],
      ArrowUp: ["source", side === "source" ? index : strongest(side, index)[0]?.index],
      ArrowDown: ["target", side === "target" ? index : strongest(side, index)[0]?.index],
    };
    if (event.key === "Escape") {
      pinned = null;
      show(pointed);
    }
    const goal = goals[event.key];
    if (!goal || goal[1] === undefined) return;
    event.preventDefault();
    chips[goal[0]][goal[1]].focus();
  }

  function point(at) {
    pointed = at;
    show(pointed ?? pinned);
  }

  function weightOf(side, index, other) {
    const [target, source] = side === "target" ? [index, other] : [other, index];
    return weights[target * data.source.length + source];
  }

  function strongest(side, index) {
    const opposite = data[side === "target" ? "source" : "target"];
    return opposite
      .map((token, other) => ({ token, index: other, weight: weightOf(side, index, other) }))
      .sort((a, b) => b.weight - a.weight)
      .slice(0, 3);
  }

  function spokenWeights(side, index) {
    const found = strongest(side, index)
      .map(({ token, weight }) => `${token.text} ${short(weight)}`)
      .join(", ");
    return `${spoken(data[side][index])}; ${verb(side)} ${found}`;
  }

  function show(at) {
    for (const side of ["source", "target"]) {
      chips[side].forEach((chip, index) => {
        const active = same(at, [side, index]);
        chip.classList.toggle("active", active);
        chip.setAttribute("aria-pressed", String(same(pinned, [side, index])));
        const weight = at && at[0] !== side ? weightOf(at[0], at[1], index) : null;
        chip.style.setProperty("--weight", Math.min(1, (weight ?? 0) / data.top));
        chip.querySelector(".weight")?.remove();
        if (weight !== null && weight >= 0.005) {
          const number = document.createElement("span");
          number.className = "weight";
          number.textContent = short(weight);
          chip.append(number);
        }
      });
    }
    for (const { path, weight, source, target } of paths) {
      const shown = !at || (at[0] === "target" ? at[1] === target : at[1] === source);
      path.style.strokeOpacity = shown ? Math.min(1, weight / data.top) : 0;
    }
    say(at);
  }

  function say(at) {
    said = at;
    if (!at) {
      readout.textContent = root.scrollWidth > root.clientWidth + 4 ? AT_REST + SCROLLS : AT_REST;
      return;
    }
    const [side, index] = at;
    const parts = [bold(data[side][index].text), ` ${verb(side)} `];
    strongest(side, index).forEach(({ token, weight }, rank) => {
      parts.push(rank ? " · " : "", bold(token.text), ` ${weight.toFixed(3)}`);
    });
    readout.replaceChildren(...parts);
  }

  // Long sentences get tighter and smaller tokens, and scroll only where these would be too small to read.
  function fit() {
    const room = root.clientWidth - 8;
    const needed = () => Math.max(rows.source.offsetWidth, rows.target.offsetWidth);
    for (let shrink = 1; shrink >= SMALLEST; shrink -= 0.08) {
      root.style.setProperty("--tight", shrink * shrink);
      root.style.setProperty("--shrink", Math.max(READABLE, shrink));
      if (needed() <= room) break;
    }
    root.style.setProperty("--room", `${needed() > room ? room - FADED : room}px`);
    fade();
    lines.style.width = `${Math.max(room, needed())}px`;
    if (!said) say(null);
  }

  // The edge behind which more stands is faded.
  function fade() {
    root.classList.toggle("scrolls", root.scrollLeft + root.clientWidth < root.scrollWidth - 4);
  }

  function place() {
    fit();
    const frame = root.getBoundingClientRect();
    const ends = {
      source: chips.source.map((chip) => middle(chip, frame, "bottom", root.scrollLeft)),
      target: chips.target.map((chip) => middle(chip, frame, "top", root.scrollLeft)),
    };
    for (const { path, source, target } of paths) {
      const [x0, y0] = ends.source[source];
      const [x1, y1] = ends.target[target];
      const bend = (y1 - y0) / 2;
      path.setAttribute("d", `M${x0},${y0}C${x0},${y0 + bend} ${x1},${y1 - bend} ${x1},${y1}`);
    }
  }
}

function middle(chip, frame, edge, scrolled) {
  const box = chip.getBoundingClientRect();
  return [box.left + box.width / 2 - frame.left + scrolled, box[edge] - frame.top];
}

function verb(side) {
  return side === "target" ? SAID.token_lines.looks_at : SAID.token_lines.looked_at_by;
}

function same(a, b) {
  return Boolean(a && b && a[0] === b[0] && a[1] === b[1]);
}

function bold(text) {
  const element = document.createElement("b");
  const isolated = document.createElement("bdi");
  isolated.textContent = text;
  element.append(isolated);
  return element;
}

function short(weight) {
  return weight.toFixed(2).replace(/^0/, "");
}
