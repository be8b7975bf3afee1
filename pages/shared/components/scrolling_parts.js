// Lets the keyboard into what scrolls sideways: a long formula, or a figure wider than its column.

const SCROLLING = { ".katex-display": "formula", '[class*="st-key-"][class*="-scroll"]': "figure" };

function reachScrollingParts() {
  for (const [selector, kind] of Object.entries(SCROLLING)) {
    for (const part of document.querySelectorAll(selector)) reach(part, kind);
  }
}

function reach(part, kind) {
  const scrolls = part.scrollWidth > part.clientWidth + 1;
  if (scrolls === part.hasAttribute("tabindex")) return;
  const said = { tabindex: "0", role: "group", "aria-label": `${kind}; arrow keys scroll it` };
  for (const [name, value] of Object.entries(said)) {
    if (scrolls) part.setAttribute(name, value);
    else part.removeAttribute(name);
  }
}
