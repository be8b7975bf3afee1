// Saves a chart through plotly's own mode bar, which the page hides: the format is set, then its button is pressed.
export default function ({ data, parentElement }) {
  const root = parentElement.querySelector(".root");
  const sharp = { png: 3, svg: 1 };
  const buttons = Object.keys(sharp).map((format) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = format.toUpperCase();
    button.onclick = () => {
      const chart = document.querySelector(`.st-key-${CSS.escape(data.chart)} .js-plotly-plot`);
      const save = chart?.querySelector(".modebar-btn");
      if (!save) return;
      const { width, height } = chart._fullLayout;
      chart._context.toImageButtonOptions = { format, filename: data.name, scale: sharp[format], width, height };
      keepOpen();
      save.click();
    };
    return button;
  });
  root.replaceChildren(...buttons);
}

// Plotly downloads by a click on a link outside of the panel, which would close the panel with the chart in it.
function keepOpen() {
  const swallow = (event) => {
    if (!event.target.matches?.("a[download]")) return;
    event.stopImmediatePropagation();
    window.removeEventListener("click", swallow, true);
  };
  window.addEventListener("click", swallow, true);
}
