// The pinned sentences: the newest translation large, with earlier ones as a small history below it, the newest first.
// Everything that a model wrote becomes textContent.
const SHOWN = 4;
const REPEATS = 4;

export default live(function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  const open = new Set([...root.querySelectorAll("details[open]")].map((element) => element.dataset.source));
  root.classList.toggle("long", data.sentences.some(({ source }) => source.length > 30));
  root.replaceChildren(...data.sentences.map((sentence) => block(sentence, open)));
});

function block({ source, samples }, open) {
  const section = element("section");
  section.append(element("p", "source", source));
  const latest = samples.at(-1);
  if (!latest) {
    section.append(element("p", "waiting", "not translated yet"));
    return section;
  }
  const line = element("p", "latest");
  line.append(written(latest.translation));
  section.append(line, element("p", "step", `step ${latest.step.toLocaleString("en")}${counted(latest.translation)}`));
  const earlier = samples.slice(0, -1).reverse();
  if (earlier.length) section.append(history(earlier.slice(0, SHOWN)));
  if (earlier.length > SHOWN) {
    const details = element("details");
    details.dataset.source = source;
    details.open = open.has(source);
    details.append(element("summary", "", `${(earlier.length - SHOWN).toLocaleString("en")} earlier`), history(earlier.slice(SHOWN)));
    section.append(details);
  }
  return section;
}

function history(samples) {
  const list = element("ol");
  for (const sample of samples) {
    const item = element("li");
    item.append(element("span", "step", sample.step.toLocaleString("en")), written(sample.translation));
    list.append(item);
  }
  return list;
}

// A line has the same height whatever is written: what repeats is counted, what is longer ends in an ellipsis, and
// pointing at it shows all.
function written(text) {
  if (!text) return element("em", "", "nothing");
  const made = element("bdi", "", folded(text.split(" ")).join(" "));
  made.title = text;
  return made;
}

function counted(text) {
  const words = text.split(" ");
  return folded(words).length < words.length ? ` · ${words.length} words` : "";
}

// Runs of up to three words that come at least REPEATS times in a row, as in "il ×42" and "(il est) ×9".
function folded(words) {
  const found = [];
  for (let at = 0; at < words.length; ) {
    const [length, times] = repeated(words, at);
    const part = words.slice(at, at + length).join(" ");
    found.push(times > 1 ? `${length > 1 ? `(${part})` : part} ×${times}` : part);
    at += length * times;
  }
  return found;
}

function repeated(words, at) {
  for (let length = 1; length <= 3; length++) {
    let times = 1;
    while (words.slice(at, at + length).every((word, i) => words[at + times * length + i] === word)) times++;
    if (times >= REPEATS) return [length, times];
  }
  return [1, 1];
}

function element(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}
