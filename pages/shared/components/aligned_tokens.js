export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  setKindColours(root, data.colours);
  const list = document.createElement("ol");
  list.setAttribute("aria-label", filled(SAID.aligned_tokens.both, { first: data.labels[0], second: data.labels[1] }));
  for (const column of data.columns) {
    const item = document.createElement("li");
    item.className = "pair";
    item.append(...column.map(chip));
    item.setAttribute("aria-label", column.map((token, row) => `${data.labels[row]}: ${token ? spoken(token) : SAID.aligned_tokens.nothing}`).join("; "));
    list.append(item);
  }
  const names = document.createElement("div");
  names.className = "pair names";
  names.append(...data.labels.map(named));
  root.replaceChildren(names, list);
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
    element.title = SAID.aligned_tokens.none;
    return element;
  }
  fillToken(element, token);
  const number = document.createElement("span");
  number.className = "probability";
  number.textContent = shortProbability(token.probability);
  element.append(number);
  element.title = [...notesOf(token), filled(SAID.aligned_tokens.probability, { p: token.probability })].join(" ");
  return element;
}

function shortProbability(p) {
  if (p >= 0.9995) return p === 1 ? "1" : ">.999";
  return p < 0.001 ? "<.001" : p.toPrecision(3).replace(/^0/, "");
}
