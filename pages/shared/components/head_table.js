// The table of heads. A title sorts, a name opens the head on its page, a click elsewhere in a row takes it in hand.
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  const focused = parentElement.activeElement?.dataset?.of;
  let sort = data.sort;
  const table = element("table");
  const head = element("tr");
  const titles = [{ name: "head", title: "Head", help: "In the order of the pass.", words: true }, ...data.columns];
  for (const column of titles) head.append(title(column));
  const thead = element("thead");
  thead.append(head);
  const body = element("tbody");
  const lines = data.rows.map((row, index) => line(row, index));
  table.append(thead, body);
  const { scrollLeft = 0, scrollTop = 0 } = root.querySelector(".scroll") ?? {};
  const scroll = element("div", "scroll");
  scroll.append(table);
  const frame = element("div", "frame");
  frame.append(scroll);
  root.replaceChildren(frame);
  arrange();
  scroll.scrollTo(scrollLeft, scrollTop);
  showWhetherMore(root, frame, scroll);
  if (focused) root.querySelector(`[data-of="${CSS.escape(focused)}"]`)?.focus();

  function title({ name, title: text, help, words }) {
    const cell = element("th", name === "head" ? "first" : words ? "words" : "number");
    cell.scope = "col";
    cell.dataset.column = name;
    const button = element("button", "", text);
    button.type = "button";
    button.title = help;
    button.dataset.of = `sort ${name}`;
    button.onclick = () => {
      const largestFirst = name !== "head" && !words;
      const first = largestFirst ? `-${name}` : name;
      sort = sort === first ? (largestFirst ? name : `-${name}`) : first;
      arrange();
      setTriggerValue("sorted", sort);
    };
    cell.append(button);
    return cell;
  }

  function arrange() {
    const down = sort.startsWith("-");
    const name = down ? sort.slice(1) : sort;
    const at = data.columns.findIndex((column) => column.name === name);
    const order = data.rows.map((_, index) => index);
    if (at >= 0) {
      const words = data.columns[at].words;
      const key = (index) => (words ? data.rows[index].cells[at]?.text : data.rows[index].cells[at]?.value) ?? null;
      order.sort((a, b) => {
        const [x, y] = [key(a), key(b)];
        if (x === null || y === null) return (x === null) - (y === null) || a - b; // what has no value comes last
        const sign = words ? String(x).localeCompare(String(y)) : x - y;
        return (down ? -sign : sign) || a - b;
      });
    } else if (down) order.reverse();
    body.replaceChildren(...order.map((index) => lines[index]));
    for (const cell of head.children) {
      const sorted = cell.dataset.column === (at >= 0 ? name : "head");
      if (sorted) cell.setAttribute("aria-sort", down ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  function line(row, index) {
    const made = element("tr", row.id === data.chosen ? "chosen" : "");
    made.style.setProperty("--kind", `light-dark(${row.colours.light}, ${row.colours.dark})`);
    const first = element("th", "first");
    first.scope = "row";
    first.append(link(row, index));
    made.append(first);
    row.cells.forEach((cell, place) => made.append(draw(cell, data.columns[place])));
    made.onclick = (event) => {
      if (!event.target.closest?.("a")) setTriggerValue("picked", row.id);
    };
    return made;
  }

  function link(row, index) {
    const made = element("a", "", row.name);
    made.href = row.href;
    made.title = "Open it on the Attention page";
    made.dataset.of = `open ${index}`;
    made.onclick = (event) => {
      const own = document.querySelectorAll(`.st-key-${data.links} a`)[index];
      if (!own || event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      own.click();
    };
    return made;
  }

  function draw(cell, { words }) {
    const made = element("td", words ? "words" : "number");
    if (cell === null) {
      made.classList.add("none");
      made.textContent = "–";
      made.title = "This head has no such place to look at.";
      return made;
    }
    if (cell.quiet) made.classList.add("quiet");
    if (cell.note) made.title = cell.note;
    made.append(element("span", "text", cell.text));
    if (cell.bar !== null) {
      const track = element("span", "track");
      const bar = element("span", "bar");
      bar.style.left = `${100 * Math.min(cell.start, cell.bar)}%`;
      bar.style.width = `${100 * Math.abs(cell.bar - cell.start)}%`;
      track.append(bar);
      if (cell.mark !== null) {
        const mark = element("span", "mark");
        mark.style.left = `${100 * cell.mark}%`;
        track.append(mark);
      }
      made.append(track);
    }
    return made;
  }
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

function element(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}
