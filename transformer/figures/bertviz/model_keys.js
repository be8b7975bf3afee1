// bertviz draws for the mouse alone. This gives every small picture a place in the tab order and Enter, and draws what
// is switched off, or at its mean, in grey.
(() => {
  const { off, at_mean: atMean, grey } = window.bertviz_params;
  const drawing = document.getElementById("vis");
  const isAmong = (heads, layer, head) => heads.some(([a, b]) => a === layer && b === head);
  const isOff = (layer, head) => isAmong(off, layer, head);
  const state = (layer, head) => (isAmong(atMean, layer, head) ? ", at its mean" : isOff(layer, head) ? ", switched off" : "");
  const backgrounds = [...drawing.querySelectorAll(".attn_background")];
  backgrounds.forEach((background, index) => {
    const [layer, head] = background.id.split("_").slice(-2).map(Number);
    const picture = background.parentNode;
    const region = picture.lastElementChild;
    region.setAttribute("tabindex", index ? "-1" : "0");
    region.setAttribute("role", "button");
    region.setAttribute("aria-label", `layer ${layer}, head ${head}${state(layer, head)}`);
    if (isOff(layer, head)) for (const line of picture.querySelectorAll("line")) line.setAttribute("stroke", grey);
    region.onkeydown = (event) => {
      const heads = backgrounds.filter((other) => other.id.split("_").at(-2) === String(layer)).length;
      const goal = { ArrowLeft: index - 1, ArrowRight: index + 1, ArrowUp: index - heads, ArrowDown: index + heads }[event.key];
      if (event.key === "Enter" || event.key === " ") region.dispatchEvent(new MouseEvent("click", { bubbles: true }));
      else if (!backgrounds[goal]) return;
      else backgrounds[goal].parentNode.lastElementChild.focus();
      event.preventDefault();
    };
  });
  new MutationObserver(() => {
    const heading = [...drawing.querySelectorAll("text.detail")].map((text) => text.textContent).join("");
    const found = heading.match(/Layer (\d+), Head (\d+)/);
    if (!found || !isOff(Number(found[1]), Number(found[2]))) return;
    for (const line of drawing.querySelectorAll(".detail line")) line.setAttribute("stroke", grey);
  }).observe(drawing, { childList: true, subtree: true });
})();
