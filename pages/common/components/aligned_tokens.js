export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  setKindColours(root, data.colours);
  const list = document.createElement("ol");
  list.setAttribute("aria-label", data.labels.join(" and "));
  list.append(pair(data.labels.map(named), "names"));
  for (const column of data.columns) {
    const item = pair(column.map(chip), "");
    item.setAttribute("aria-label", column.map((token, row) => `${data.labels[row]}: ${token ? spoken(token) : "nothing"}`).join("; "));
    list.append(item);
  }
  root.replaceChildren(list);
}

function pair(cells, className) {
  const item = document.createElement("li");
  item.className = `pair ${className}`;
  item.append(...cells);
  return item;
}

function named(label) {
  const element = document.createElement("span");
  element.textContent = label;
  return element;
}

function chip(token) {
  const element = document.createElement("div");
  if (!token) {
    element.className = "gap";
    element.title = "Nothing stands here in this output.";
    return element;
  }
  fillToken(element, token);
  const number = document.createElement("span");
  number.className = "probability";
  number.textContent = shortProbability(token.probability);
  element.append(number);
  element.title = [...notesOf(token), `Probability ${token.probability} when it was written.`].join(" ");
  return element;
}

function shortProbability(p) {
  if (p >= 0.9995) return p === 1 ? "1" : ">.999";
  return p < 0.001 ? "<.001" : p.toPrecision(3).replace(/^0/, "");
}
