// Where the boxes of a picture stand: from the left to the right in the order of the data.

const BOX_HEIGHT = 44;
const CHARACTER = 8.2;
const MOST_CHARACTERS = 30;

function shortened(text) {
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1)}…` : text;
}

// `boxes` are {id, title, note}, `arrows` [from, to]. Returns the boxes with x and y of their middle and their width,
// the arrows with their paths, and the size of all.
function laidOut(boxes, arrows) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 40, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const box of boxes) {
    const longest = Math.max(shortened(box.title).length, box.note.length * 0.9);
    graph.setNode(box.id, { width: Math.round(longest * CHARACTER) + 36, height: BOX_HEIGHT });
  }
  for (const [from, to] of arrows) graph.setEdge(from, to);
  dagre.layout(graph);
  const placed = new Map(boxes.map((box) => [box.id, { ...box, ...graph.node(box.id) }]));
  const widths = new Map();
  for (const box of placed.values()) widths.set(box.x, Math.max(widths.get(box.x) || 0, box.width));
  for (const box of placed.values()) box.width = widths.get(box.x); // boxes above each other are alike
  return {
    boxes: [...placed.values()],
    arrows: graph.edges().map(({ v, w }) => ({ from: v, to: w, path: arrowPath(placed.get(v), placed.get(w), graph.edge(v, w).points, widths) })),
    width: (graph.graph().width || 0) + 8,
    height: (graph.graph().height || 0) + 8,
  };
}

// The line of an arrow, from the right side of a box to the left side of the other. Where it passes other boxes, which
// stand one above the other around a middle, it runs straight from their left sides to their right sides: it bends only
// where there are no boxes.
function arrowPath(from, to, points, widths) {
  const passed = points.slice(1, -1).filter((point) => widths.has(point.x)).flatMap(({ x, y }) => {
    const half = widths.get(x) / 2;
    return [{ x: x - half - 4, y }, { x: x + half + 4, y }];
  });
  return curve([{ x: from.x + from.width / 2, y: from.y }, ...passed, { x: to.x - to.width / 2, y: to.y }]);
}

// A smooth line through points, which leaves and reaches each of them level.
function curve(points) {
  const [first, ...rest] = points;
  let path = `M${first.x},${first.y}`;
  let last = first;
  for (const point of rest) {
    const middle = (last.x + point.x) / 2;
    path += ` C${middle},${last.y} ${middle},${point.y} ${point.x},${point.y}`;
    last = point;
  }
  return path;
}
