// Saves a drawing that stands in a frame of the page, as it is drawn there at this moment. What styles say is written
// into the copy, what cannot be seen is left out, and the choices above the drawing become its heading.
const NAMESPACE = "http://www.w3.org/2000/svg";
const PADDING = 12;
const HEADING = 28;
const SHARP = 3;
const NO_XML = /[^\t\n\r\u{20}-\u{D7FF}\u{E000}-\u{FFFD}\u{10000}-\u{10FFFF}]/gu; // what no XML file may hold
const STYLES = ["fill", "font-family", "font-size", "font-weight"];

export default function ({ data, parentElement }) {
  const buttons = ["png", "svg"].map((format) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = format.toUpperCase();
    button.onclick = async () => {
      button.disabled = true; // a large drawing takes seconds
      await save(data, format).finally(() => (button.disabled = false));
    };
    return button;
  });
  parentElement.querySelector(".root").replaceChildren(...buttons);
}

async function save(data, format) {
  const frame = document.querySelector(`.st-key-${CSS.escape(data.frame)} iframe`).contentDocument;
  const svg = picture(frame);
  const xml = new XMLSerializer().serializeToString(svg).replace(NO_XML, "\uFFFD");
  const text = new Blob([xml], { type: "image/svg+xml" });
  download(format === "svg" ? text : await pixels(svg, text, SHARP), `${data.name}.${format}`);
}

function picture(frame) {
  const drawn = frame.querySelector("#vis svg");
  const copy = drawn.cloneNode(true);
  writeStyles(drawn, copy, frame.defaultView);
  leaveOutUnseen(copy);
  frame.body.append(copy);
  const box = copy.getBBox();
  copy.remove();
  const chosen = [...frame.querySelectorAll("label")].map(
    (label) => `${label.firstChild.textContent.trim()} ${label.querySelector("select").selectedOptions[0].textContent}`,
  );
  const heading = chosen.length ? HEADING : 0;
  const [x, y] = [box.x - PADDING, box.y - PADDING - heading];
  const [width, height] = [box.width, box.height + heading].map((length) => Math.ceil(length + 2 * PADDING));
  const colours = frame.defaultView.getComputedStyle(frame.body);
  copy.prepend(element("rect", { x, y, width, height, fill: colours.backgroundColor }));
  if (heading) {
    const place = { x: x + PADDING, y: y + PADDING + 14 };
    const look = { fill: colours.color, "font-family": colours.fontFamily, "font-size": colours.fontSize };
    copy.append(element("text", { ...place, ...look }, chosen.join(" · ")));
  }
  set(copy, { width, height, viewBox: `${x} ${y} ${width} ${height}` });
  return copy;
}

function writeStyles(drawn, copy, window) {
  const styled = "text, tspan, .background";
  const copies = copy.querySelectorAll(styled);
  drawn.querySelectorAll(styled).forEach((original, index) => {
    const computed = window.getComputedStyle(original);
    for (const name of STYLES) copies[index].style.setProperty(name, computed.getPropertyValue(name));
  });
}

function leaveOutUnseen(copy) {
  for (const node of copy.querySelectorAll("*")) {
    const hidden = node.getAttribute("visibility") === "hidden" && !node.querySelector("[visibility=visible]");
    const bare = node.getAttribute("stroke-opacity") === "0" && ["line", "path"].includes(node.localName);
    if (hidden || bare || node.style.opacity === "0") node.remove();
    for (const name of ["tabindex", "role", "aria-pressed"]) node.removeAttribute(name);
  }
}

async function pixels(svg, text, sharp) {
  const image = new Image();
  image.src = URL.createObjectURL(text);
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = ["width", "height"].map((side) => Number(svg.getAttribute(side)) * sharp);
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  URL.revokeObjectURL(image.src);
  return new Promise((done) => canvas.toBlob(done));
}

// The link stands nowhere on the page: a click on one outside of the panel would close the panel.
function download(blob, name) {
  const link = document.createElement("a");
  [link.href, link.download] = [URL.createObjectURL(blob), name];
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

function element(name, attributes, text = "") {
  const made = document.createElementNS(NAMESPACE, name);
  made.textContent = text;
  return set(made, attributes);
}

function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}
