// The pinned sentences: the newest translation large, with earlier ones as a small history below it, the newest first.
// Everything that a model wrote becomes textContent.
const SHOWN = 4;

export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  const open = new Set([...root.querySelectorAll("details[open]")].map((element) => element.dataset.source));
  root.classList.toggle("long", data.sentences.some(({ source }) => source.length > 30));
  root.replaceChildren(...data.sentences.map((sentence) => block(sentence, open)));
}

function block({ source, samples }, open) {
  const section = element("section");
  section.append(element("p", "source", source));
  const latest = samples.at(-1);
  if (!latest) {
    section.append(element("p", "waiting", "not translated yet"));
    return section;
  }
  const line = element("p", "latest");
  line.append(written(latest.translation), element("span", "step", `step ${latest.step.toLocaleString("en")}`));
  section.append(line);
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

function written(text) {
  return text ? element("bdi", "", text) : element("em", "", "nothing");
}

function element(name, className = "", text = "") {
  const made = document.createElement(name);
  if (className) made.className = className;
  if (text) made.textContent = text;
  return made;
}
