export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".root");
  setKindColours(root, data.colours);
  const scale = Uint32Array.from(rampOf(data.scales[isDark(root) ? "dark" : "light"]), pixelOf);
  const hadFocus = root.contains(parentElement.activeElement ?? root.getRootNode().activeElement);
  root.setAttribute("role", data.choosable ? "radiogroup" : "group");
  root.setAttribute("aria-label", data.label);
  const pictures = data.pictures.map((picture, index) => {
    const element = document.createElement(data.choosable ? "button" : "div");
    element.className = "picture";
    const [rows, columns] = picture.shape;
    const weights = bytes(picture.weights);
    const canvas = pixelCanvas(rows, columns, (at) => scale[weights[at]]);
    canvas.setAttribute("aria-hidden", "true");
    const label = document.createElement("span");
    label.textContent = picture.label;
    element.append(canvas, label);
    if (!data.choosable) return element;
    element.type = "button";
    element.setAttribute("role", "radio");
    element.onclick = () => choose(index);
    element.onkeydown = (event) => move(event, index);
    return element;
  });
  root.replaceChildren(...pictures);
  if (data.choosable) mark(data.chosen);
  if (hadFocus) pictures.find((element) => element.tabIndex === 0)?.focus();

  function choose(index) {
    mark(data.pictures[index].name);
    pictures[index].focus();
    setTriggerValue("picked", data.pictures[index].name);
  }

  function mark(chosen) {
    const at = data.pictures.findIndex(({ name }) => name === chosen);
    pictures.forEach((element, index) => {
      element.setAttribute("aria-checked", String(index === at));
      element.tabIndex = index === Math.max(at, 0) ? 0 : -1;
    });
  }

  function move(event, index) {
    const step = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (!step) return;
    event.preventDefault();
    choose((index + step + pictures.length) % pictures.length);
  }
}
