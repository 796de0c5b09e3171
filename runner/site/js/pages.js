// The pages: each function returns {title, content}, and the content may come later.

const MOST_IN_OVERVIEW = 80;

function statusBadge(name) {
  const result = RESULTS[name];
  return result ? badge(result.status, result.status) : badge("not run", "quiet");
}

function instantText(instant) {
  return instant.replace("T", " ").replace("Z", " UTC");
}

function heading(kind, title, ...beside) {
  return make("div", { class: "heading" }, make("p", { class: "kind" }, kind), make("h1", { tabindex: "-1" }, title), beside);
}

function nodeLinks(names) {
  return names.length
    ? make("ul", { class: "links" }, names.map((name) => make("li", {}, link(NODES.has(name) ? NODES.get(name).label : name, nodeHref(name), { class: NODES.has(name) ? NODES.get(name).type : "" }))))
    : make("p", { class: "quiet" }, "nothing");
}

// --- the first page

function overview() {
  const tables = DATA.nodes.filter((node) => !isTest(node) && node.type !== "source");
  const drawn = new Set(DATA.nodes.filter((node) => !isTest(node)).map((node) => node.name));
  const worst = DATA.nodes.filter((node) => [...FAILED, "warn"].includes(statusOf(node.name)));
  return {
    title: DATA.project.name,
    content: [
      heading(`target ${DATA.project.target}, ${DATA.project.storage}`, DATA.project.name,
        make("p", { class: "quiet" }, DATA.run ? `last run ${instantText(DATA.run.at)}` : "not run yet: runner build")),
      DATA.project.about ? DATA.project.about.split(/\n\s*\n/).map((text) => make("p", { class: "about" }, text)) : null,
      tiles(),
      worst.length ? section("Needs a look", make("ul", { class: "plain" }, worst.map((node) => make("li", {}, statusBadge(node.name), " ", link(node.label, nodeHref(node.name)), " ", make("span", { class: "quiet" }, firstLine(RESULTS[node.name].message) || rowsText(RESULTS[node.name])))))) : null,
      drawn.size <= MOST_IN_OVERVIEW ? section("The way of the data", pictureOf(drawn, "the way of the data")) : null,
      section("Tables, in the order of the data", tableOfTables(tables)),
      DATA.landed.freshness.length ? section("Freshness", freshnessTable(DATA.landed.freshness)) : null,
    ],
  };
}

function firstLine(text) {
  return (text || "").trim().split("\n")[0];
}

function rowsText(result) {
  return Object.entries(result.rows).filter(([, number]) => number).map(([kind, number]) => `${numberText(number)} ${kind.replaceAll("_", " ")}`).join(", ");
}

function tiles() {
  const counts = GROUPS.map(([type, name]) => [name, DATA.nodes.filter((node) => node.type === type)]);
  const tile = (name, number, note, href) => make("li", {}, make("b", {}, numberText(number)), ` ${name} `, note ? make("span", { class: "quiet" }, note) : null);
  const notes = (nodes) => {
    const bad = nodes.filter((node) => FAILED.includes(statusOf(node.name))).length;
    const good = nodes.filter((node) => ["pass", "success"].includes(statusOf(node.name))).length;
    return bad ? `${bad} failed` : good ? `${good} fine` : "";
  };
  return make("ul", { class: "tiles" }, counts.filter(([, nodes]) => nodes.length).map(([name, nodes]) => tile(name, nodes.length, notes(nodes))),
    tile("Formats", DATA.formats.length, ""));
}

function tableOfTables(nodes) {
  const testsOf = (name) => childrenOf(name).map((child) => NODES.get(child)).filter(isTest);
  const summary = (name) => {
    const tests = testsOf(name);
    const bad = tests.filter((test) => FAILED.includes(statusOf(test.name)));
    return !tests.length ? make("span", { class: "quiet" }, "none") : bad.length ? badge(`${bad.length} of ${tests.length} fail`, "fail") : String(tests.length);
  };
  const rowsOf = (name) => {
    const rows = RESULTS[name] ? Object.values(RESULTS[name].rows) : [];
    return rows.length ? numberText(RESULTS[name].rows.rows ?? total(rows)) : "";
  };
  const kind = (node) => (node.facts.find(([name]) => name === "materialized" || name === "shows") || ["", ""])[1];
  return table(["name", "kind", "description", "columns", "tests", "rows written", "last run"], nodes.map((node) => [
    link(node.label, nodeHref(node.name), { class: node.type }), `${node.type} ${kind(node)}`, node.description,
    node.columns ? numberText(node.columns.names.length) : "", summary(node.name), rowsOf(node.name), statusBadge(node.name),
  ]), "tables, in the order of the data");
}

function freshnessTable(rows) {
  const names = Object.keys(rows[0]).filter((name) => rows.some((row) => row[name] !== null));
  const cell = (name, value) => name === "source" ? link(value, nodeHref(`source.${value}`)) : value === null ? "" : typeof value === "number" ? numberText(value) : make("span", { class: "time" }, String(value).slice(0, 16).replace("T", " "));
  return table(names.map((name) => name.replaceAll("_", " ")), rows.map((row) => names.map((name) => cell(name, row[name]))), "freshness");
}

// --- the page of a node

async function nodePage(name) {
  const node = NODES.get(name);
  if (!node) return missing(name);
  const around = reached([name], parentsOf);
  reached([name], childrenOf).forEach((one) => { if (!isTest(NODES.get(one)) || one === name) around.add(one); });
  const tests = childrenOf(name).filter((child) => isTest(NODES.get(child)));
  const readers = childrenOf(name).filter((child) => !isTest(NODES.get(child)));
  const long = (await texts()).nodes[name];
  return {
    title: node.label,
    content: [
      heading(node.type.replace("_", " "), node.label, RESULTS[name] ? statusBadge(name) : null),
      node.description ? make("p", { class: "about" }, node.description) : null,
      facts(node),
      resultOf(name),
      node.type === "source" ? landed(node) : null,
      around.size > 1 ? section("Where it is", pictureOf(around, `what ${node.label} reads, and what reads it`, { focus: name }), make("p", {}, link("in the whole picture", route("flow", name)))) : null,
      make("div", { class: "two" }, section("It reads", nodeLinks(node.parents)), isTest(node) ? null : section("Read by", nodeLinks(readers))),
      tests.length ? section("Tests", make("ul", { class: "plain" }, tests.map((test) => make("li", {}, statusBadge(test), " ", link(NODES.get(test).label, nodeHref(test)))))) : null,
      node.columns ? section("Columns", columnsTable(node)) : null,
      sqlOf(long, node),
    ],
  };
}

function facts(node) {
  const rows = node.facts.map(([name, value]) => [make("dt", {}, name), make("dd", {}, outside(value))]);
  if (node.format) rows.unshift([make("dt", {}, "format"), make("dd", {}, FORMATS.has(node.format) ? link(node.format, route("format", node.format)) : node.format)]);
  return make("dl", { class: "facts" }, rows.map((pair) => make("div", {}, pair)));
}

function resultOf(name) {
  const result = RESULTS[name];
  if (!result) return null;
  return section("Last result", make("p", {}, statusBadge(name), ` ${instantText(result.ended)}, in ${result.seconds} s`,
    rowsText(result) ? `: ${rowsText(result)}` : "", result.failures ? `: ${numberText(result.failures)} rows fail` : ""),
    result.message ? make("pre", { tabindex: "0", role: "region", "aria-label": "message" }, result.message) : null);
}

function landed(node) {
  const fresh = DATA.landed.freshness.filter((row) => row.source === node.label);
  const charts = chartsOf(node.label).filter(Boolean);
  if (!fresh.length && !charts.length) {
    return section("What has landed", make("p", { class: "quiet" }, DATA.landed.problem || "nothing yet"));
  }
  return section("What has landed", fresh.length ? freshnessTable(fresh) : null, make("div", { class: "charts" }, charts));
}

function columnsTable(node) {
  const { names, about, words } = node.columns;
  const end = ([name, column]) => link(`${NODES.has(name) ? NODES.get(name).label : name}.${column}`, route("column", name, column));
  const list = (ends) => ends.flatMap((one, index) => (index ? [", ", end(one)] : [end(one)]));
  const from = (name) => {
    const ends = columnParents(node.name, name);
    return ends.length > 6 ? [list(ends.slice(0, 6)), ` and ${ends.length - 6} more`] : list(ends);
  };
  const isDerived = names.some((name) => columnParents(node.name, name).length);
  const heads = ["column", "about", ...(isDerived ? ["comes from"] : [])];
  return [
    words ? make("p", { class: "quiet" }, "Where columns come from: ", words, ".") : null,
    table(heads, names.map((name) => [link(name, route("column", node.name, name)), about[name] || "", ...(isDerived ? [from(name)] : [])]), "columns"),
  ];
}

function sqlOf(long, node) {
  const rows = (title, list) => codeBlock(title, list.map((row) => JSON.stringify(row)).join("\n"), "yaml", true);
  const blocks = [
    long.source && codeBlock("Source", long.source, "sql", true),
    long.compiled && codeBlock(isTest(node) ? "Compiled: the rows that fail" : "Compiled", long.compiled, "sql", !long.source && long.compiled.length < 4000),
    long.increment && codeBlock("Compiled, once its table exists", long.increment, "sql", false),
    ...Object.entries(long.given || {}).map(([name, list]) => rows(`Given: ${name}`, list)),
    long.expect && rows("Expected", long.expect),
  ].filter(Boolean);
  return blocks.length ? section(long.given ? "Rows" : "SQL", blocks) : null;
}

// --- other pages

function columnPage(name, column) {
  const node = NODES.get(name);
  if (!node || !node.columns || !node.columns.names.includes(column)) return missing(`${name}.${column}`);
  const key = (one) => JSON.stringify(one);
  const seen = new Map([[key([name, column]), [name, column]]]);
  const arrows = [];
  const follow = (step, arrowOf) => {
    const queue = [[name, column]];
    for (const one of queue) {
      for (const next of step(...one)) {
        if (!NODES.has(next[0])) continue;
        arrows.push(arrowOf(key(one), key(next)));
        if (!seen.has(key(next)) && seen.size < 200) queue.push(next);
        seen.set(key(next), next);
      }
    }
  };
  follow(columnParents, (one, next) => [next, one]);
  follow(columnChildren, (one, next) => [one, next]);
  const boxes = [...seen].map(([id, [owner, own]]) => ({ id, title: own, note: NODES.get(owner).label, kind: NODES.get(owner).type, status: "", href: route("column", owner, own) }));
  return {
    title: `${node.label}.${column}`,
    content: [
      heading("column", `${node.label}.${column}`),
      node.columns.about[column] ? make("p", { class: "about" }, node.columns.about[column]) : null,
      make("p", {}, "A column of ", link(node.label, nodeHref(name)), node.columns.words ? `; ${node.columns.words}.` : "."),
      section("Where it comes from, and what comes from it", picture(boxes, arrows.filter((arrow) => arrow.every((id) => seen.has(id))), `lineage of ${column}`, { focus: key([name, column]) })),
      node.format && FORMATS.has(node.format) ? make("p", {}, "Where in the message: ", link(`the format ${node.format}`, route("format", node.format))) : null,
    ],
  };
}

async function formatPage(name) {
  const format = FORMATS.get(name);
  if (!format) return missing(name);
  const { spec, mapping } = (await texts()).formats[name];
  const used = DATA.nodes.filter((node) => node.type === "source" && node.format === name);
  return {
    title: name,
    content: [
      heading("format", name),
      make("p", { class: "about" }, format.about),
      make("dl", { class: "facts" },
        format.docs ? make("div", {}, make("dt", {}, "documentation"), make("dd", {}, outside(format.docs))) : null,
        format.cases ? make("div", {}, make("dt", {}, "cases in this project"), make("dd", {}, numberText(format.cases))) : null),
      mapping
        ? section("What a message becomes", make("p", { class: "quiet" }, `The case “${mapping.case}” of this format. Point at a column to see where in the message it comes from.`), mappingPicture(mapping))
        : section("What a message becomes", make("p", { class: "quiet" }, "The format has no case with a message in JSON that is a row change.")),
      section("Sources", nodeLinks(used.map((node) => node.name))),
      spec ? section("Spec", codeBlock(`${name}.yml`, spec, "yaml", true)) : null,
    ],
  };
}

function flowPage(focus = "") {
  if (focus && !NODES.has(focus)) return missing(focus);
  const holder = make("div", {});
  const types = GROUPS.filter(([type]) => DATA.nodes.some((node) => node.type === type));
  const boxes = types.map(([type, name]) => [type, name, make("input", { type: "checkbox", checked: !type.endsWith("test") ? "" : null, onchange: draw })]);
  const words = make("input", { type: "search", placeholder: "names, tags, folders", "aria-label": "show only", oninput: draw });
  const around = make("input", { type: "checkbox", checked: focus ? "" : null, onchange: draw });
  const count = make("span", { class: "quiet", "aria-live": "polite" });
  function draw() {
    const wanted = new Set(boxes.filter(([, , box]) => box.checked).map(([type]) => type));
    const near = focus && around.checked ? new Set([...reached([focus], parentsOf), ...reached([focus], childrenOf)]) : null;
    const text = words.value.toLowerCase();
    const names = DATA.nodes.filter((node) => node.name === focus || (wanted.has(node.type) && (!near || near.has(node.name))
      && [node.name, node.path, ...node.tags].some((one) => one.toLowerCase().includes(text)))).map((node) => node.name);
    count.textContent = `${numberText(names.length)} shown`;
    holder.replaceChildren(names.length ? pictureOf(new Set(names), "the way of the data", { focus, tall: true }) : make("p", {}, "Nothing fits."));
  }
  draw();
  return {
    title: "The way of the data",
    content: [
      heading("picture", "The way of the data"),
      make("form", { class: "filters", onsubmit: (event) => event.preventDefault() }, words,
        boxes.map(([type, name, box]) => make("label", { class: type }, box, ` ${name}`)),
        focus ? make("label", {}, around, ` only around ${NODES.get(focus).label}`) : null, count),
      holder,
    ],
  };
}

async function searchPage(query) {
  const hits = await found(query);
  const shown = hits.slice(0, MOST_FOUND);
  return {
    title: `Search: ${query}`,
    content: [
      heading("search", query ? `“${query}”` : "Search"),
      make("p", { class: "quiet", role: "status" }, query ? `${numberText(hits.length)} found${hits.length > shown.length ? `, the first ${shown.length} are shown` : ""}` : "Type what you look for: names, columns, descriptions, SQL."),
      make("ol", { class: "found" }, shown.map((one) => make("li", {}, link(one.entry.title, one.entry.href), " ", badge(one.entry.kind), make("p", { class: "quiet" }, excerpt(one))))),
    ],
  };
}

function missing(name) {
  return { title: "Not here", content: [heading("nothing", "Not here"), make("p", {}, `There is nothing called “${name}”. `), make("p", {}, link("To the first page", "#/"))] };
}
