// Numbers over time as bars, one kind on top of the other.

const SHADES = 7;

// `series` are {name, values}; `moments` are seconds since 1970. Returns a figure with a legend, and its numbers below.
function chart(title, moments, series) {
  const box = make("div", { class: "plot" });
  const legend = make("ul", { class: "legend" }, series.map((one, index) =>
    make("li", {}, make("span", { class: `swatch shade-${index % SHADES}` }), `${one.name} `, make("b", {}, numberText(total(one.values))))));
  const rows = moments.map((moment, index) => [timesIn(moment), ...series.map((one) => numberText(one.values[index]))]);
  const numbers = make("details", {}, make("summary", {}, "as a table"), table(["time", ...series.map((one) => one.name)], rows, `${title}, as a table`));
  const figure = make("figure", {}, make("figcaption", {}, title, make("span", { class: "quiet" }, " (UTC)")), legend, box, numbers);
  let plot = null;
  const draw = () => {
    if (plot) plot.destroy();
    plot = box.clientWidth ? new uPlot(options(box.clientWidth, series, moments), [moments, ...stacked(series)], box) : null;
    box.querySelectorAll("canvas").forEach((canvas) => {
      canvas.setAttribute("role", "img");
      canvas.setAttribute("aria-label", title);
    });
  };
  new ResizeObserver(draw).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return figure;
}

function total(values) {
  return values.reduce((sum, value) => sum + value, 0);
}

// The heights of the bars: the last series stands at the bottom, each other on those behind it, so that a bar that is
// drawn later does not hide one before it.
function stacked(series) {
  const sums = series[0].values.map(() => 0);
  const heights = [...series].reverse().map((one) => one.values.map((value, index) => (sums[index] += value)));
  return heights.reverse();
}

function options(width, series, moments) {
  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line") }, font: "12px system-ui" };
  const spare = moments.length > 1 ? Math.min(...moments.slice(1).map((moment, index) => moment - moments[index])) : 3600;
  return {
    width, height: 190, legend: { show: false }, cursor: { show: false },
    scales: {
      x: { range: () => [moments[0] - spare, moments[moments.length - 1] + spare] },
      y: { range: (_, __, most) => [0, Math.max(1, most * 1.08)] },
    },
    tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), "UTC"),
    axes: [{ ...axis, space: 90, values: (_, ticks, __, ___, step) => ticks.map((tick) => axisText(tick, step)) }, { ...axis, size: 58, values: (_, ticks) => ticks.map((tick) => (Number.isInteger(tick) ? numberText(tick) : "")) }],
    series: [{}, ...series.map((_, index) => ({
      fill: colour(`--shade-${index % SHADES}`), stroke: colour("--page"), width: 1, points: { show: false },
      paths: uPlot.paths.bars({ size: [0.8, 46] }),
    }))],
  };
}

// A moment on an axis: the day, and the time where there are several moments a day. The title says the zone.
function axisText(seconds, step) {
  const text = new Date(seconds * 1000).toISOString();
  return step < 86400 ? `${text.slice(5, 10)} ${text.slice(11, 16)}` : text.slice(0, 10);
}

// The charts of a source: rows by kind, dead letters by reason.
function chartsOf(source) {
  const rows = DATA.landed.over_time.filter((row) => row.source === source);
  const dead = rows.filter((row) => row.kind === "dead_letter");
  const series = (list, nameOf, valueOf) => {
    const moments = [...new Set(list.map((row) => row.moment))].sort((one, other) => one - other);
    const names = [...new Set(list.map(nameOf))];
    const values = (name) => moments.map((moment) =>
      total(list.filter((row) => row.moment === moment && nameOf(row) === name).map(valueOf)));
    return [moments, names.map((name) => ({ name, values: values(name) }))];
  };
  const alive = rows.filter((row) => row.kind !== "dead_letter");
  const changes = rows.filter((row) => row.kind === "row");
  return [
    alive.length ? chart("Messages over time, by kind", ...series(alive, (row) => row.kind, (row) => row.messages)) : null,
    changes.length ? chart("Rows over time, by operation", ...series(changes, (row) => row.op, (row) => row.rows)) : null,
    dead.length ? chart("Dead letters by when they landed, by reason", ...series(dead, (row) => row.reason, (row) => row.rows)) : null,
  ];
}
