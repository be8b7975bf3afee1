export default live(function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  setKindColours(root, data.colours);
  const label = document.createElement("div");
  label.className = "label";
  label.textContent = data.label;
  const list = document.createElement("ol");
  list.setAttribute("aria-label", data.label);
  data.tokens.forEach((token, index) => {
    const item = document.createElement("li");
    fillToken(item, token);
    const probability = data.probabilities?.[index];
    if (probability !== undefined) {
      const number = document.createElement("span");
      number.className = "probability";
      number.textContent = shortProbability(probability);
      item.append(number);
      item.title = [...notesOf(token), filled(SAID.token_chips.probability, { p: probability })].join(" ");
    }
    list.append(item);
  });
  list.classList.toggle("scrolls", data.scrolls);
  root.replaceChildren(label, list);
  if (data.scrolls && list.scrollWidth > list.clientWidth) list.tabIndex = 0;
});

function shortProbability(p) {
  if (p >= 0.9995) return p === 1 ? "1" : ">.999";
  return p < 0.001 ? "<.001" : p.toPrecision(3).replace(/^0/, "");
}
