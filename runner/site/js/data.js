// What there is: the data of this file, and what can be looked up in them. Nothing is there before `unpacked`.

let DATA, NODES, FORMATS, RESULTS, CHILDREN;

async function unpacked() {
  const bytes = Uint8Array.from(atob(document.getElementById("data").textContent), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  DATA = await new Response(stream).json();
  NODES = new Map(DATA.nodes.map((node) => [node.name, node]));
  FORMATS = new Map(DATA.formats.map((format) => [format.name, format]));
  RESULTS = DATA.run ? DATA.run.results : {};
  CHILDREN = new Map(DATA.nodes.map((node) => [node.name, []]));
  for (const node of DATA.nodes) {
    for (const parent of node.parents) if (CHILDREN.has(parent)) CHILDREN.get(parent).push(node.name);
  }
}

const GROUPS = [
  ["source", "Sources"], ["seed", "Seeds"], ["model", "Models"], ["mirror", "Mirrors"], ["exposure", "Exposures"],
  ["test", "Tests"], ["unit_test", "Unit tests"],
];
const FAILED = ["error", "fail"];

function isTest(node) {
  return node.type === "test" || node.type === "unit_test";
}

function nodeHref(name) {
  return route("node", name);
}

function statusOf(name) {
  return RESULTS[name] ? RESULTS[name].status : "";
}

// All nodes that can be reached from these by a step, themselves included.
function reached(names, step, depth = Infinity) {
  const seen = new Set(names);
  let frontier = [...names];
  for (let level = 0; frontier.length && level < depth; level++) {
    frontier = frontier.flatMap(step).filter((name) => NODES.has(name) && !seen.has(name));
    frontier.forEach((name) => seen.add(name));
  }
  return seen;
}

const parentsOf = (name) => NODES.get(name).parents;
const childrenOf = (name) => CHILDREN.get(name) || [];

// --- columns: as [node, column], or [node, column, member] for what a map has under a key

function columnName(column, member) {
  return member === undefined ? column : `${column}['${member}']`;
}

// The columns that a column comes from.
function columnParents(name, column, member) {
  const node = NODES.get(name);
  if (!node || !node.columns) return [];
  const same = member === undefined ? [column] : [column, member];
  return node.columns.same ? node.parents.map((parent) => [parent, ...same]) : node.columns.from[column] || [];
}

let readers = null;

// The columns that come from a column. What reads the whole of a map reads each of its members.
function columnChildren(name, column, member) {
  if (!readers) {
    readers = new Map();
    for (const node of DATA.nodes) {
      for (const own of node.columns ? node.columns.names : []) {
        for (const [parent, of, one] of columnParents(node.name, own)) {
          const key = JSON.stringify([parent, of]);
          if (!readers.has(key)) readers.set(key, []);
          readers.get(key).push({ end: [node.name, own], member: one });
        }
      }
    }
  }
  return (readers.get(JSON.stringify([name, column])) || [])
    .filter((one) => member === undefined || one.member === undefined || one.member === member)
    .map(({ end }) => (member !== undefined && NODES.get(end[0]).columns.same ? [...end, member] : end));
}
