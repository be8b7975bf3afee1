// bertviz draws for the mouse alone. This gives its queries a place in the tab order and keys, and unfolds one at once,
// which stays until another one is pointed at.
(() => {
  const drawing = document.getElementById("vis");
  let at = window.bertviz_params.row;
  new MutationObserver(prepare).observe(drawing, { childList: true });
  drawing.addEventListener(
    "mouseleave",
    (event) => event.target !== drawing && event.target.closest("#expanded") && event.stopPropagation(),
    true,
  );
  prepare();

  function prepare() {
    for (const side of drawing.querySelectorAll("#leftText")) {
      const tokens = [...side.children];
      tokens.forEach((token, index) => {
        token.setAttribute("tabindex", index === at ? "0" : "-1");
        token.setAttribute("role", "button");
        token.setAttribute("aria-label", `query ${token.querySelector(".token").textContent}`);
        token.onfocus = () => fire(token, "mouseover");
        token.onkeydown = (event) => {
          const goal = tokens[index + (event.key === "ArrowDown") - (event.key === "ArrowUp")];
          if (event.key === "Enter" || event.key === " ") toggle(token, index);
          else if (!["ArrowUp", "ArrowDown"].includes(event.key) || !goal) return;
          else goal.focus();
          event.preventDefault();
        };
      });
    }
    unfold();
  }

  function unfold() {
    const token = drawing.querySelectorAll("#expanded #leftText > g")[at];
    if (token) fire(token, "mouseover");
  }

  function toggle(token, index) {
    at = index;
    const other = token.closest("#expanded") ? "#collapsed" : "#expanded";
    fire(token.querySelector("rect:last-of-type"), "click");
    drawing.querySelectorAll(`${other} #leftText > g`)[index]?.focus();
  }

  function fire(element, type) {
    element.dispatchEvent(new MouseEvent(type, { bubbles: true }));
  }
})();
