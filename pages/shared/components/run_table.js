// The table of runs. A tick lays a run's curve over the others; its name puts it in hand for the buttons below.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  const focused = parentElement.activeElement?.dataset?.of;
  const table = element("table");
  const head = element("tr");
  head.append(element("th", "tick"));
  for (const [index, { title, number }] of data.columns.entries()) {
    const cell = element("th", index ? (number ? "number" : "") : "first", title);
    cell.scope = "col";
    head.append(cell);
  }
  const body = element("tbody");
  for (const row of data.rows) body.append(drawRow(row, data.columns, setTriggerValue));
  const thead = element("thead");
  thead.append(head);
  table.append(thead, body);
  const { scrollLeft = 0, scrollTop = 0 } = root.querySelector(".scroll") ?? {};
  const scroll = element("div", "scroll");
  scroll.append(table);
  const frame = element("div", "frame");
  frame.append(scroll);
  root.replaceChildren(frame);
  scroll.scrollTo(scrollLeft, scrollTop);
  showWhetherMore(root, frame, scroll);
  if (focused) root.querySelector(`[data-of="${CSS.escape(focused)}"]`)?.focus();
}

// The right edge fades while there are columns beyond it.
function showWhetherMore(root, frame, scroll) {
  const look = () => frame.classList.toggle("more", scroll.scrollLeft + scroll.clientWidth < scroll.scrollWidth - 2);
  scroll.onscroll = look;
  root._observer?.disconnect();
  root._observer = new ResizeObserver(look);
  root._observer.observe(scroll);
  look();
}

function drawRow(row, columns, setTriggerValue) {
  const line = element("tr", row.chosen ? "chosen" : "");
  const tick = element("input");
  tick.type = "checkbox";
  tick.checked = row.shown;
  tick.dataset.of = `tick ${row.id}`;
  tick.setAttribute("aria-label", `Show the curve of ${row.id}`);
  if (row.colour) tick.style.setProperty("--own", `light-dark(${row.colour.light}, ${row.colour.dark})`);
  tick.onchange = () => setTriggerValue("ticked", [row.id, tick.checked]);
  const first = element("td", "tick");
  first.append(tick);
  line.append(first);
  columns.forEach(({ number }, index) => {
    const cell = element(index ? "td" : "th", index ? (number ? "number" : "") : "first");
    if (index) {
      cell.textContent = row.cells[index];
      if (row.cells[index].length > 28) [cell.className, cell.title] = ["long", row.cells[index]];
    }
    else {
      cell.scope = "row";
      const name = element("button", "", row.cells[0]);
      name.type = "button";
      name.dataset.of = `name ${row.id}`;
      name.setAttribute("aria-pressed", String(row.chosen));
      name.onclick = () => setTriggerValue("chosen", row.id);
      cell.append(name);
    }
    line.append(cell);
  });
  return line;
}

function element(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}
