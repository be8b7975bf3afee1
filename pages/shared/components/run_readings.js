// A run in numbers: its state, how far it is, and a line of readings. Redrawn in place.
export default live(function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  root.querySelector(".state").textContent = data.state;
  root.querySelector(".state").dataset.state = data.tone;
  root.querySelector(".rest").textContent = data.rest;
  const bar = root.querySelector(".bar");
  bar.setAttribute("aria-valuenow", Math.round(data.share * 100));
  bar.setAttribute("aria-valuetext", `${data.state}, ${data.rest}`);
  bar.firstElementChild.style.width = `${data.share * 100}%`;
  const list = root.querySelector("dl");
  list.replaceChildren(
    ...data.readings.map(([name, value, unit]) => {
      const item = document.createElement("div");
      const term = document.createElement("dt");
      const detail = document.createElement("dd");
      const small = document.createElement("small");
      term.textContent = name;
      small.textContent = unit;
      detail.append(value, small);
      item.append(term, detail);
      return item;
    }),
  );
});
