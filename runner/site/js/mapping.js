// A format as a picture: a message on the left, the row that it becomes on the right, and lines from where a column
// comes to the column. Where there is no room for lines, the words say the same.

function mappingPicture(mapping) {
  const lines = mapping.message.map((line, index) => make("span", { class: "line", "data-line": index }, LANGUAGES.yaml(line), "\n"));
  const message = make("pre", { tabindex: "0", role: "region", "aria-label": "the message" }, make("code", {}, lines));
  const rows = mapping.columns.map((column, index) => make("li", { "data-column": index, tabindex: "0" },
    make("b", {}, column.name), make("code", { class: "value" }, column.value),
    make("span", { class: "quiet" }, column.from.length ? column.from.map(([words]) => words).join(", ") : column.how)));
  const list = make("ol", { class: "row", "aria-label": "the row" }, rows);
  const lineLayer = makeSvg("svg", { class: "lines", "aria-hidden": "true" });
  const frame = make("div", { class: "mapping" },
    make("div", {}, make("h3", {}, "the message"), message), make("div", {}, make("h3", {}, "its row in the changelog"), list), lineLayer);
  const draw = () => drawLines(frame, lineLayer, lines, rows, mapping.columns);
  new ResizeObserver(draw).observe(frame);
  rows.forEach((row, index) => {
    const numbers = mapping.columns[index].from.map(([, number]) => number);
    const light = (is) => () => {
      frame.classList.toggle("lit", is);
      row.classList.toggle("on", is);
      numbers.forEach((number) => number !== null && lines[number].classList.toggle("on", is));
      lineLayer.querySelectorAll(`[data-column="${index}"]`).forEach((path) => path.classList.toggle("on", is));
    };
    for (const [event, is] of [["pointerenter", true], ["pointerleave", false], ["focus", true], ["blur", false]]) row.addEventListener(event, light(is));
  });
  return frame;
}

function drawLines(frame, layer, lines, rows, columns) {
  layer.replaceChildren();
  const place = frame.getBoundingClientRect();
  const right = Math.max(...lines.map((line) => line.getBoundingClientRect().left)) && lines[0].closest("pre").getBoundingClientRect().right;
  columns.forEach((column, index) => {
    const row = rows[index].getBoundingClientRect();
    if (row.left < right) return; // one stands below the other
    for (const [, number] of column.from) {
      if (number === null) continue;
      const line = lines[number].getBoundingClientRect();
      // Level to the end of the message, beside no text but its own, and from there across the gap.
      const from = { x: Math.min(line.right, right) - place.left + 4, y: line.top + line.height / 2 - place.top };
      const end = { x: Math.max(from.x, right - place.left), y: from.y };
      const to = { x: row.left - place.left - 3, y: row.top + row.height / 2 - place.top };
      layer.append(makeSvg("path", { class: `shade-${index % SHADES}`, "data-column": index, d: curve([from, end, to]) }));
    }
  });
}
