// The numbers that move along the arrows into the chosen step, and the walk that goes on by itself.
const LASTS_MS = 1100; // of a number on its way
const APART_MS = 220; // between the starts of two
const STAYS_MS = 700; // where it arrived
const STEP_MS = 3200; // of a step while it plays
const DIGIT = 6.7; // pixels of a character
const HIGH = 20; // of a number's frame
const LANE = HIGH + 2; // numbers keep so far apart, as they all go to one step

// Starts them when the step, or the token that is followed, has changed; a mere redrawing lets them go on.
function moveNumbers(root, drawing, data) {
  const key = JSON.stringify([data.chosen, data.moving]);
  const before = root._moving;
  if (before?.key === key) {
    if (before.group) drawing.append(before.group);
    return;
  }
  const flow = (root._moving = { key, group: null });
  if (!before || !data.moving.length || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  flow.group = make("g", { "aria-hidden": "true" });
  flow.group.classList.add("moving");
  const middle = (data.moving.length - 1) / 2;
  const chips = data.moving.map((moving, index) =>
    chip(flow.group, moving, data, { begins: index * APART_MS, lane: (index - middle) * LANE }),
  );
  drawing.append(flow.group);
  root.dataset.moved = data.moving.map(({ name, text }) => `${name}: ${text}`).join(" | ");
  const ends = LASTS_MS + STAYS_MS + APART_MS * (chips.length - 1);
  const start = performance.now();
  requestAnimationFrame(function draw(now) {
    const gone = now - start;
    if (root._moving !== flow || gone > ends || !root.isConnected) {
      flow.group.remove();
      flow.group = null;
      return;
    }
    for (const place of chips) place(gone);
    requestAnimationFrame(draw);
  });
}

// A value's name and its first numbers in a frame; returns what puts it where it is after so many milliseconds.
function chip(group, { name, text, points }, picture, { begins, lane }) {
  const written = `${name}  ${text}`;
  const width = written.length * DIGIT + 12;
  const own = make("g", { opacity: 0 });
  const label = make("text", {});
  label.textContent = written;
  own.append(make("rect", { x: -width / 2, y: -HIGH / 2, width, height: HIGH, rx: 5 }), label);
  group.append(own);
  const path = make("path", { d: `M${points.map((point) => point.join(",")).join("L")}` });
  const length = path.getTotalLength();
  return (gone) => {
    const share = Math.min(1, Math.max(0, (gone - begins) / LASTS_MS));
    const over = gone - begins - LASTS_MS - STAYS_MS / 2;
    const { x, y } = path.getPointAtLength(length * share * share * (3 - 2 * share));
    const inside = Math.min(picture.width - width / 2 - 1, Math.max(width / 2 + 1, x));
    own.setAttribute("transform", `translate(${inside},${y + lane})`);
    own.setAttribute("opacity", gone < begins ? 0 : Math.min(1, Math.max(0, 1 - (2 * over) / STAYS_MS)));
  };
}

// The button that goes on from step to step, until it is pressed again or the last one is reached.
function play(root, bar, data, pick) {
  const names = data.order.map(([step]) => step);
  const at = names.indexOf(data.chosen), last = names.length - 1;
  if (!root._button) {
    root._button = document.createElement("button");
    root._button.type = "button";
    bar.append(root._button);
  }
  if (at === last) root._playing = false;
  show();
  wait(STEP_MS);
  root._button.onclick = () => {
    root._playing = !root._playing;
    show();
    wait(0);
  };

  function show() {
    root._button.textContent = root._playing ? "❚❚ Pause" : "▶ Play";
    root._button.setAttribute("aria-label", root._playing ? "Pause the walk" : "Play the walk, step by step");
  }

  function wait(ms) {
    clearTimeout(root._timer);
    if (!root._playing) return;
    const goal = names[at === last ? 0 : at + 1];
    root._timer = setTimeout(() => root.isConnected && root._playing && pick(goal), ms);
  }
}
