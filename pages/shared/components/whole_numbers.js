// Keeps a number and the sign behind it on one line: "5 %" and "3.2 × 10⁻⁷".
// React keeps its own node and writes it anew, as it was, only when the text changes.

const BREAKABLE = /(?<=\d) (?=[%×])|(?<=×) (?=10)/g;

function keepNumbersWhole() {
  for (const text of document.querySelectorAll("[data-testid=stMarkdown]")) {
    const walker = document.createTreeWalker(text, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
      const whole = node.data.replace(BREAKABLE, "\u00a0");
      if (whole !== node.data && !node.parentElement.closest("code, .katex")) node.data = whole;
    }
  }
}
