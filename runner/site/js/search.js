// Search over everything: each word must stand somewhere in what is found; names count most, SQL least.

const WEIGHTS = { name: 40, columns: 12, description: 8, facts: 4, text: 2 };
const MOST_FOUND = 60;
let entries = null;

function searchEntries(long) {
  const nodes = DATA.nodes.map((node) => ({
    title: node.label, kind: node.kind, href: nodeHref(node.name),
    fields: {
      name: node.name,
      columns: [...(node.columns ? node.columns.names : []), ...node.tables.flatMap((one) => [one.name, ...Object.keys(one.columns)])].join(" "),
      description: [node.description, ...Object.values(node.columns ? node.columns.about : {})].join("\n"),
      facts: [...node.facts.map(([, value]) => value), node.format || "", statusOf(node.name)].join("\n"),
      text: Object.values(long.nodes[node.name] || {}).map(asText).join("\n"),
    },
  }));
  const formats = DATA.formats.map((format) => ({
    title: format.name, kind: "format", href: route("format", format.name),
    fields: {
      name: format.name, columns: "", description: format.about, facts: format.docs,
      text: long.formats[format.name].spec,
    },
  }));
  const all = [...nodes, ...formats];
  for (const entry of all) {
    entry.lower = Object.fromEntries(Object.entries(entry.fields).map(([name, text]) => [name, text.toLowerCase()]));
  }
  return all;
}

function asText(value) {
  return typeof value === "string" ? value : JSON.stringify(value);
}

// What is found for a text, the best first, as {entry, field, at}: where the first word stands.
function found(query) {
  entries = entries || searchEntries(DATA.texts);
  const words = query.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = words.length ? entries.map((entry) => hit(entry, words)).filter(Boolean) : [];
  return hits.sort((one, other) => other.score - one.score || one.entry.title.localeCompare(other.entry.title));
}

function hit(entry, words) {
  let score = 0;
  let first = null;
  for (const word of words) {
    let best = 0;
    for (const [field, text] of Object.entries(entry.lower)) {
      const at = text.indexOf(word);
      if (at < 0) continue;
      let weight = WEIGHTS[field];
      if (field === "name") weight *= text === word ? 4 : text.startsWith(word) ? 2 : 1;
      if (weight > best) {
        best = weight;
        if (word === words[0]) first = { field, at, length: word.length };
      }
    }
    if (!best) return null;
    score += best;
  }
  return { entry, score, ...first };
}

// The line in which it stands, with the words marked.
function excerpt({ entry, field, at, length }) {
  const text = entry.fields[field];
  const begin = Math.max(text.lastIndexOf("\n", at - 1) + 1, at - 60);
  const line = text.slice(begin, at + length + 80).split("\n")[0];
  return [line.slice(0, at - begin), make("mark", {}, line.slice(at - begin, at - begin + length)),
    line.slice(at - begin + length)];
}
