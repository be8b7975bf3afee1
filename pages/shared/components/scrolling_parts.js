// Lets the keyboard into what scrolls sideways: a long formula, or a figure wider than its column.

const SCROLLING = { ".katex-display": SAID.scrolling_parts.formula, '[class*="st-key-"][class*="-scroll"]': SAID.scrolling_parts.figure };

function reachScrollingParts() {
  for (const [selector, said] of Object.entries(SCROLLING)) {
    for (const part of document.querySelectorAll(selector)) reach(part, said);
  }
}

function reach(part, label) {
  const scrolls = part.scrollWidth > part.clientWidth + 1;
  if (scrolls === part.hasAttribute("tabindex")) return;
  const said = { tabindex: "0", role: "group", "aria-label": label };
  for (const [name, value] of Object.entries(said)) {
    if (scrolls) part.setAttribute(name, value);
    else part.removeAttribute(name);
  }
}
