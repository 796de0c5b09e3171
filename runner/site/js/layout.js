// Where the boxes of a picture stand: from the left to the right in the order of the data.

const BOX_HEIGHT = 42;
const CHARACTER = 7.7;
const MOST_CHARACTERS = 30;

function shortened(text) {
  return text.length > MOST_CHARACTERS ? `${text.slice(0, MOST_CHARACTERS - 1)}…` : text;
}

// `boxes` are {id, title, note}, `arrows` [from, to]. Returns the boxes with x and y of their middle and their width,
// the arrows with their points, and the size of all.
function laidOut(boxes, arrows) {
  const graph = new dagre.graphlib.Graph();
  graph.setGraph({ rankdir: "LR", nodesep: 14, ranksep: 56, marginx: 12, marginy: 12 });
  graph.setDefaultEdgeLabel(() => ({}));
  for (const box of boxes) {
    const longest = Math.max(shortened(box.title).length, box.note.length * 0.85);
    graph.setNode(box.id, { width: Math.round(longest * CHARACTER) + 44, height: BOX_HEIGHT });
  }
  for (const [from, to] of arrows) graph.setEdge(from, to);
  dagre.layout(graph);
  const placed = new Map(boxes.map((box) => [box.id, { ...box, ...graph.node(box.id) }]));
  const widths = new Map();
  for (const box of placed.values()) widths.set(box.x, Math.max(widths.get(box.x) || 0, box.width));
  for (const box of placed.values()) box.width = widths.get(box.x); // boxes above each other are alike
  return {
    boxes: [...placed.values()],
    arrows: graph.edges().map(({ v, w }) => ({ from: v, to: w, points: between(placed.get(v), placed.get(w), graph.edge(v, w).points) })),
    width: graph.graph().width || 0,
    height: graph.graph().height || 0,
  };
}

// The points of an arrow, from the right side of a box to the left side of the other. One that passes other boxes
// goes around them; one that passes none has a single point in between, which would only bend it.
function between(from, to, points) {
  const around = points.length > 3 ? points.slice(1, -1) : [];
  return [{ x: from.x + from.width / 2, y: from.y }, ...around, { x: to.x - to.width / 2, y: to.y }];
}

// A smooth line through points, from one box to the other.
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
