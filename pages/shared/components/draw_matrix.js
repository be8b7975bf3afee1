// A matrix of buttons, one of which is chosen in each row: a row is one stop for Tab, arrow keys choose in it.

export default function ({ data, parentElement, setStateValue }) {
  const root = parentElement.querySelector(".root");
  setKindColours(root, data.colours);
  if (root._drawn) return; // the page hears of every mark and says nothing new
  const drawn = (root._drawn = data.drawn);
  const grid = document.createElement("div");
  grid.className = "grid";
  grid.style.gridTemplateColumns = `auto repeat(${data.columns.length}, minmax(0, 2.25rem))`;
  grid.setAttribute("role", "group");
  grid.setAttribute("aria-label", data.label);
  grid.append(label(""), ...data.columns.map(label));
  const marks = data.rows.map(row);
  root.replaceChildren(grid);

  function label(text) {
    const element = document.createElement("span");
    element.className = "label";
    element.textContent = text;
    element.setAttribute("aria-hidden", "true");
    return element;
  }

  function row(name, index) {
    const line = document.createElement("div");
    line.className = "line";
    line.setAttribute("role", "radiogroup");
    line.setAttribute("aria-label", name);
    const cells = data.columns.map((column, place) => {
      const cell = document.createElement("button");
      cell.type = "button";
      cell.className = "cell";
      cell.setAttribute("role", "radio");
      cell.setAttribute("aria-label", `${name}: ${column}`);
      cell.onclick = () => choose(index, place);
      cell.onkeydown = (event) => move(event, index, place);
      return cell;
    });
    line.append(label(name), ...cells);
    grid.append(line);
    mark(cells, drawn[index]);
    return cells;
  }

  function mark(cells, chosen) {
    cells.forEach((cell, place) => {
      cell.setAttribute("aria-checked", String(place === chosen));
      cell.tabIndex = place === (chosen ?? 0) ? 0 : -1;
    });
  }

  function choose(index, place) {
    drawn[index] = place;
    mark(marks[index], place);
    marks[index][place].focus();
    setStateValue("drawn", [...drawn]);
  }

  function move(event, index, place) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const line = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!step && !line) return;
    event.preventDefault();
    if (step) return choose(index, (place + step + data.columns.length) % data.columns.length);
    const next = index + line;
    marks[next]?.[drawn[next] ?? place].focus();
  }
}
