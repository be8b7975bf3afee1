// Underlines each technical term where a page's texts first name it, and says what it means on hover, focus and touch.
// A text is split behind a node that React keeps: React finds its own node whenever it writes or removes the text.

const TEXTS = "[data-testid=stMarkdown]";
const LEFT_OUT = "a, button, code, pre, em, h1, h2, .katex, .term, .st-key-glossary, [data-testid=stSidebar]";
const HEADINGS = "[data-testid=stMain] :is(h1, h2)";
const LABELS =
  "[data-testid=stMain] :is(label, summary, [data-testid=stWidgetLabel], [role=radio], [role=tab]) [data-testid=stMarkdownContainer]";
const LEFT_OUT_THERE = "a, code, em, .katex, .term, .st-key-glossary, :has(> [data-testid=stTooltipIcon])";
const PICTURES = "[data-testid=stPlotlyChart], [data-testid^=stBidiComponent], [data-testid=stIFrame]";
const WAIT_MS = 150;

const split = new Map(); // a text node of React's: its text as shortened here, and what was put behind it
let terms = null; // each as name, meaning, section and formula
let spellings = {};
let finder = null;
let waiting = 0;
let tooltip = null;
let shown = null;
let described = null;
const pointer = { x: NaN, y: NaN }; // where it was last

export default function ({ data }) {
  const first = terms === null;
  ({ terms, spellings } = data);
  document.documentElement.lang = data.language;
  finder = new RegExp(data.pattern, "g");
  if (first) begin();
  later();
}

function begin() {
  keepOneEntry();
  tooltip = Object.assign(document.createElement("div"), { id: "term-meaning", role: "tooltip", popover: "manual" });
  new MutationObserver(() => {
    tidy();
    later();
  }).observe(document.body, { subtree: true, childList: true, characterData: true });
  const term = (event) => event.target.closest?.(".term");
  const show = (event) => explain([term(event)], term(event));
  const onTooltip = (event) => event.target.closest?.("#term-meaning");
  document.addEventListener("toggle", later, true);
  addEventListener("resize", later);
  document.fonts.addEventListener("loadingdone", later);
  const showOrHide = (event) => (term(event) ? show(event) : onTooltip(event) || hide());
  const inLabel = ({ target }) => (target.closest?.("[data-testid=stMain]") ? termsOfControl(target) : []);
  const isFocused = () => shown && shown === document.activeElement;
  // What comes to lie under a resting pointer, as an answer below its button does, is explained once the pointer moves.
  const hasMoved = ({ clientX: x, clientY: y }) => x !== pointer.x || y !== pointer.y;
  const over = (event) => {
    if (!hasMoved(event)) return;
    Object.assign(pointer, { x: event.clientX, y: event.clientY });
    if (!isFocused() || term(event)) showOrHide(event);
  };
  document.addEventListener("pointerover", over);
  document.addEventListener("pointermove", over);
  document.addEventListener("pointerdown", (event) => {
    Object.assign(pointer, { x: event.clientX, y: event.clientY });
    showOrHide(event);
  }, true); // which controls keep to themselves
  document.addEventListener("focusin", (event) => (inLabel(event).length ? explain(inLabel(event), event.target) : showOrHide(event)));
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  document.addEventListener("scroll", () => shown && putTooltip(), true);
}

function later() {
  waiting ||= setTimeout(() => {
    waiting = 0;
    keepNumbersWhole();
    mark();
    reachScrollingParts();
  }, WAIT_MS);
}

// Takes back what stands behind a text that React has since rewritten or removed.
function tidy() {
  for (const [node, { kept, behind }] of split) {
    if (node.isConnected && node.data === kept) continue;
    for (const piece of behind) piece.remove();
    split.delete(node);
  }
  if (shown && !shown.isConnected) hide();
}

// Once a page, where the Tab key gets to it if there is such a place; else where it passes over. A term that only a
// heading or a control names is marked there; the control's own focus explains it.
function mark() {
  tidy();
  const found = [...document.querySelectorAll(".term")].filter((term) => term.checkVisibility());
  const names = (marked) => marked.map((term) => term.dataset.term);
  const reached = new Set(names(found.filter((term) => term.tabIndex === 0)));
  const picture = largestPicture();
  const texts = [...document.querySelectorAll(TEXTS)].filter((text) => text.checkVisibility());
  const isStop = (text) => isTabStop(text, picture);
  for (const text of texts.filter(isStop)) markAll(text, reached, 0);
  const seen = new Set([...reached, ...names(found)]);
  for (const text of texts.filter((text) => !isStop(text))) markAll(text, seen, -1);
  for (const heading of document.querySelectorAll(HEADINGS)) markAll(heading, seen, -1, LEFT_OUT_THERE);
  for (const label of document.querySelectorAll(LABELS)) markAll(label, seen, null, LEFT_OUT_THERE);
}

function markAll(text, seen, tabIndex, leftOut = LEFT_OUT) {
  const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (!node.parentElement.closest(leftOut) && node.parentElement.checkVisibility()) markIn(node, seen, tabIndex);
  }
}

// The way to the page's picture is not lengthened, nor that through small print; what is opened is being read.
function isTabStop(text, picture) {
  if (text.closest("[data-testid=stExpander], [data-testid=stPopoverBody]")) return true;
  if (text.querySelector("[data-testid=stCaptionContainer]")) return false;
  return !picture || Boolean(picture.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING);
}

function largestPicture() {
  let largest = null;
  let most = 0;
  for (const picture of document.querySelectorAll(PICTURES)) {
    const { width, height } = picture.getBoundingClientRect();
    if (width * height > most) [largest, most] = [picture, width * height];
  }
  return largest;
}

function markIn(node, seen, tabIndex) {
  for (const match of node.data.matchAll(finder)) {
    const place = placeOf(match[0]);
    const [name] = terms[place] ?? [];
    if (!name || seen.has(name)) continue;
    seen.add(name);
    const rest = node.splitText(match.index);
    rest.data = rest.data.slice(match[0].length);
    const term = Object.assign(document.createElement("span"), { className: "term", textContent: match[0] });
    Object.assign(term.dataset, { term: name, place });
    if (tabIndex !== null) Object.assign(term, { tabIndex, role: "term" });
    rest.before(term);
    split.set(node, { kept: node.data, behind: [term, rest] });
    return; // the walker comes to the rest by itself
  }
}

// The place in the list of the term that is spelled so; undefined for ordinary words.
function placeOf(found) {
  const forms = [found, found.toLowerCase(), found.slice(0, -1), found.slice(0, -1).toLowerCase()];
  return spellings[forms.find((form) => Object.hasOwn(spellings, form))];
}

// The terms in the name of a control that has the focus.
function termsOfControl(control) {
  const named =
    control.closest("label, summary, [role=radio], [role=tab]") ??
    control.closest("[data-testid=stElementContainer]")?.querySelector("[data-testid=stWidgetLabel]");
  return named ? [...named.querySelectorAll(".term")] : [];
}

// Says what terms mean at the first of them.
function explain(found, of) {
  if (found[0] === shown && of === described) return;
  hide();
  shown = found[0];
  described = of;
  tooltip.replaceChildren(...found.map(meaning));
  document.querySelector("[data-testid=stApp]").append(tooltip); // which knows whether it is dark
  described.setAttribute("aria-describedby", tooltip.id);
  tooltip.showPopover();
  putTooltip();
}

function meaning(term) {
  const line = document.createElement("div");
  const [name, meaning, section, formula] = terms[term.dataset.place];
  line.append(Object.assign(document.createElement("strong"), { textContent: name }), ` · ${meaning}`);
  const source = Object.assign(document.createElement("div"), { className: "source" });
  source.append(" ", document.createRange().createContextualFragment(formula)); // MathML of the catalogue's own
  if (section) source.append(" ", Object.assign(document.createElement("span"), { textContent: filled(SAID.terms.section, { section }) }));
  if (formula || section) line.append(source);
  return line;
}

// Against the term, so that the pointer can go over to it; above a control's name, below which the control is.
function putTooltip() {
  const { left, top, bottom } = shown.getClientRects()[0];
  const { width, height } = tooltip.getBoundingClientRect();
  tooltip.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  const above = top > height && (bottom + height >= innerHeight || shown.closest("[data-testid=stWidgetLabel]"));
  tooltip.style.top = `${above ? top - height : bottom}px`;
}

function hide() {
  if (!shown) return;
  described.removeAttribute("aria-describedby");
  shown = described = null;
  tooltip.hidePopover();
}
