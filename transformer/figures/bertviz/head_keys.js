// bertviz draws for the mouse alone. This gives its squares and tokens a place in the tab order and keys; a click on a
// token, or Enter, keeps its lines drawn alone.
(() => {
  const drawing = document.getElementById("vis");
  let kept = null; // [side, index]
  for (const type of ["mouseover", "mouseleave"])
    drawing.addEventListener(type, (event) => kept && event.stopPropagation(), true);
  new MutationObserver(prepare).observe(drawing, { childList: true, subtree: true });
  prepare();

  function prepare() {
    const squares = [...drawing.querySelectorAll("svg > g:last-child > rect")];
    squares.forEach((square, head) => {
      square.setAttribute("role", "button");
      square.setAttribute("aria-label", `show or hide head ${head}`);
      square.onkeydown = (event) => {
        if (event.key === " ") fire(square, "click");
        else if (event.key === "Enter") fire(square, "dblclick");
        else return step(event, squares, head, "ArrowLeft", "ArrowRight");
        event.preventDefault();
      };
    });
    enter(squares);
    const sides = ["left", "right"].map((side) => [...drawing.querySelectorAll(`#${side} > g:last-child > g`)]);
    sides.forEach((tokens, side) => {
      tokens.forEach((token, index) => {
        token.setAttribute("role", "button");
        token.setAttribute("aria-label", `${side ? "key" : "query"} ${token.textContent}`);
        token.onfocus = () => fire(token, "mouseover");
        token.onblur = () => fire(token.parentNode.parentNode, "mouseleave");
        token.onclick = () => keep(sides, kept?.[0] === side && kept[1] === index ? null : [side, index]);
        token.onkeydown = (event) => {
          if (event.key !== "Enter" && event.key !== " ") return step(event, tokens, index, "ArrowUp", "ArrowDown");
          event.preventDefault();
          token.onclick();
        };
      });
      enter(tokens);
    });
    if (kept) keep(sides, kept);
  }

  function keep(sides, goal) {
    kept = null;
    for (const tokens of sides) {
      fire(tokens[0].parentNode.parentNode, "mouseleave");
      for (const token of tokens) token.setAttribute("aria-pressed", "false");
    }
    if (!goal) return;
    const token = sides[goal[0]][goal[1]];
    token.setAttribute("aria-pressed", "true");
    fire(token, "mouseover");
    kept = goal;
  }

  function enter(elements) {
    if (!elements.some((element) => element.tabIndex === 0))
      elements.forEach((element, index) => element.setAttribute("tabindex", index ? "-1" : "0"));
  }

  function step(event, elements, index, back, forth) {
    const goal = elements[index + (event.key === forth) - (event.key === back)];
    if (![back, forth].includes(event.key) || !goal) return;
    event.preventDefault();
    elements.forEach((element) => element.setAttribute("tabindex", element === goal ? "0" : "-1"));
    goal.focus();
  }

  function fire(element, type) {
    element.dispatchEvent(new MouseEvent(type, { bubbles: true }));
  }
})();
