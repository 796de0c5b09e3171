// The pages: each function returns {title, content}.

const MOST_IN_OVERVIEW = 80;

// How the newest result of a node ended, and when, whatever command ran it.
function statusBadge(name, withTime = true) {
  const result = RESULTS[name];
  if (!result) return badge("never run", "quiet");
  const skipped = result.was_skipped ? ", then skipped" : "";
  return [badge(result.status, result.status), withTime ? [" ", time(result.ended), skipped] : null];
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
  return {
    title: DATA.project.name,
    content: [
      heading(`target ${DATA.project.target}, ${DATA.project.storage}`, DATA.project.name),
      verdict(),
      DATA.health.sources.length ? section("Sources: how fresh, how many, how many dead letters", tableOfSources()) : null,
      DATA.project.about ? markdown(DATA.project.about) : null,
      tiles(),
      drawn.size <= MOST_IN_OVERVIEW ? section("The way of the data", pictureOf(drawn, "the way of the data")) : null,
      section("Tables, in the order of the data", tableOfTables(tables)),
    ],
  };
}

// The line of `runner status`, each reason in a line with a link to where it is, and below it what the line leaves out.
function verdict() {
  const { well, at, said, problems, warnings, sources, tables, tests } = DATA.health;
  const rows = [...sources.map((row) => [`source.${row.name}`, row]), ...[...tables, ...tests].map((row) => [row.name, row])];
  const linked = (text) => {
    const [name] = rows.find(([, row]) => row.problems.includes(text) || row.warnings.includes(text)) || [];
    const label = NODES.has(name) ? NODES.get(name).label : "";
    const start = label ? text.indexOf(label) : -1;
    return start < 0 ? text : [text.slice(0, start), link(label, nodeHref(name)), text.slice(start + label.length)];
  };
  const line = [];
  let rest = said;
  for (const text of [...problems, ...warnings].filter((one) => said.includes(one))) {
    const start = rest.indexOf(text);
    const end = start + text.length + (rest.startsWith(";", start + text.length) ? 1 : 0);
    line.push(rest.slice(0, start), make("span", { class: "reason" }, linked(text), rest.slice(start + text.length, end)));
    rest = rest.slice(end);
  }
  const more = [...problems, ...warnings].filter((text) => !said.includes(text));
  const days = Math.floor((Date.now() - Date.parse(at)) / 86_400_000);
  return make("div", { class: `verdict ${!well ? "error" : warnings.length ? "warn" : "success"}` },
    make("p", { class: "said" }, line, rest),
    more.length ? make("ul", { class: "plain" }, more.map((text) => make("li", {}, problems.includes(text) ? null : "worth a look: ", linked(text)))) : null,
    make("p", { class: "quiet" }, "as of ", time(at), days > 0 ? `, ${numberText(days)} ${days === 1 ? "day" : "days"} ago` : "",
      DATA.run ? ["; last run ", time(DATA.run.at)] : "; not run yet: runner build"));
}

function tableOfSources() {
  const count = (value) => (value === undefined || value === null ? "" : numberText(value));
  const freshOf = (row) => DATA.landed.freshness.find((one) => one.source === row.name) || {};
  const letters = (row) => {
    const fresh = freshOf(row);
    const told = [[row.dead_letters_open, "open"], [row.dead_letters_new, "new"], [fresh.waived, "waived"], [fresh.dead_letters, "in all"]];
    const words = told.filter(([number]) => number).map(([number, word]) => `${numberText(number)} ${word}`).join(", ");
    return row.limit || row.dead_letters_open ? badge(words, row.limit ? "fail" : "warn") : words || "none";
  };
  const waits = (row) => [row.waiting_files && `${numberText(row.waiting_files)} files`, row.behind && `${numberText(row.behind)} messages`].filter(Boolean).join(", ");
  const columns = [
    ["source", (row) => link(row.name, nodeHref(`source.${row.name}`), { class: "source" })],
    ["newest change", (row) => time(freshOf(row).last_event)],
    ["landed last", (row) => time(row.landed)],
    ["dead letters", letters],
    ["messages", (row) => count(freshOf(row).messages)],
    ["rows", (row) => count(freshOf(row).rows)],
    ["waits to land", waits],
    ["last run", (row) => statusBadge(row.model)],
  ];
  return [
    tableOf(columns, DATA.health.sources, "sources", "cards"),
    DATA.landed.problem ? make("p", { class: "quiet" }, `Newest changes, messages and rows: ${DATA.landed.problem}`) : null,
  ];
}

function rowsText(result) {
  return Object.entries(result.rows).filter(([, number]) => number).map(([kind, number]) => `${numberText(number)} ${kind.replaceAll("_", " ").replace(/s$/, "")}${number === 1 ? "" : "s"}`).join(", ");
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
    return !tests.length ? "none" : bad.length ? badge(`${bad.length} of ${tests.length} fail`, "fail") : String(tests.length);
  };
  const behind = new Map(DATA.health.tables.map((row) => [row.name, row.behind]));
  const written = (name) => [RESULTS[name] ? rowsText(RESULTS[name]) : "", behind.get(name) ? `behind by ${numberText(behind.get(name))}` : ""].filter(Boolean).join(", ");
  return table(["name", "kind", "last run", "rows written", "tests", "columns", "description"], nodes.map((node) => [
    link(node.label, nodeHref(node.name), { class: node.type }), node.kind, node.type === "exposure" ? "" : statusBadge(node.name), written(node.name),
    summary(node.name), node.columns ? numberText(node.columns.names.length) : "", brief(node.description),
  ]), "tables, in the order of the data");
}

// --- the page of a node

function nodePage(name) {
  const node = NODES.get(name);
  if (!node) return missing(name);
  const around = reached([name], parentsOf);
  reached([name], childrenOf).forEach((one) => { if (!isTest(NODES.get(one)) || one === name) around.add(one); });
  const tests = childrenOf(name).filter((child) => isTest(NODES.get(child)));
  const readers = childrenOf(name).filter((child) => !isTest(NODES.get(child)));
  const long = DATA.texts.nodes[name];
  const runs = node.type === "source" && node.format ? readers[0] : name; // what lands a source
  return {
    title: node.label,
    content: [
      heading(node.kind, node.label, RESULTS[runs] ? statusBadge(runs, false) : null),
      node.description ? markdown(node.description) : null,
      facts(node),
      resultOf(runs),
      node.type === "source" ? landed(node) : null,
      around.size > 1 ? section("Where it is", pictureOf(around, `what ${node.label} reads, and what reads it`, { focus: name }), make("p", {}, link("in the whole picture", route("flow", name)))) : null,
      make("div", { class: "two" }, section("It reads", nodeLinks(node.parents)), isTest(node) ? null : section("Read by", nodeLinks(readers))),
      tests.length ? section("Tests", testsList(tests)) : null,
      node.columns ? section("Columns", columnsTable(node)) : null,
      node.tables.length ? section("Tables in its messages", tablesOf(node)) : null,
      sqlOf(long, node),
    ],
  };
}

function facts(node) {
  const rows = node.facts.map(([name, value]) => [make("dt", {}, name), make("dd", {}, outside(timesIn(value)))]);
  if (node.format) rows.unshift([make("dt", {}, "format"), make("dd", {}, FORMATS.has(node.format) ? link(node.format, route("format", node.format)) : node.format)]);
  return make("dl", { class: "facts" }, rows.map((pair) => make("div", {}, pair)));
}

function resultOf(name) {
  const result = RESULTS[name];
  if (!result) return null;
  return section("Last result", make("p", {}, statusBadge(name), `, in ${result.seconds} s`,
    rowsText(result) ? `: ${rowsText(result)}` : "", result.failures ? `: ${numberText(result.failures)} rows fail` : "",
    result.since && result.since !== result.ended ? ["; it has failed since ", time(result.since)] : ""),
    result.message ? make("pre", { tabindex: "0", role: "region", "aria-label": "message" }, timesIn(result.message)) : null);
}

function landed(node) {
  const fresh = DATA.landed.freshness.filter((row) => row.source === node.label);
  const charts = chartsOf(node.label).filter(Boolean);
  if (!fresh.length && !charts.length) {
    return section("What has landed", make("p", { class: "quiet" }, DATA.landed.problem || "nothing yet"));
  }
  return section("What has landed", fresh.map(freshness), make("div", { class: "charts" }, charts));
}

// A row of the view `freshness`.
function freshness(row) {
  const words = { ddls: "statements", controls: "control messages" };
  const told = Object.entries(row).filter(([name, value]) => name !== "source" && value !== null);
  return make("dl", { class: "facts" }, told.map(([name, value]) => make("div", {}, make("dt", {}, words[name] || name.replaceAll("_", " ")),
    make("dd", {}, typeof value === "number" ? numberText(value) : time(value)))));
}

// The tests of a node, those that failed first; many are behind a click, unless some failed.
function testsList(names) {
  const hasFailed = (name) => FAILED.includes(statusOf(name));
  const sorted = [...names].sort((one, other) => hasFailed(other) - hasFailed(one));
  const list = make("ul", { class: "plain" }, sorted.map((test) => make("li", {}, statusBadge(test, false), " ",
    link(NODES.get(test).label, nodeHref(test)), " ", RESULTS[test] ? make("span", { class: "quiet" }, time(RESULTS[test].ended)) : null)));
  return names.length > 12 ? make("details", { class: "code", open: names.some(hasFailed) ? "" : null }, make("summary", {}, `${numberText(names.length)} tests`), list) : list;
}

function columnsTable(node) {
  const { names, about, types, words } = node.columns;
  const end = ([name, ...column]) => link(`${NODES.has(name) ? NODES.get(name).label : name}.${columnName(...column)}`, route("column", name, ...column));
  const list = (ends) => ends.flatMap((one, index) => (index ? [", ", end(one)] : [end(one)]));
  const from = (name) => {
    const ends = columnParents(node.name, name);
    return ends.length > 6 ? [list(ends.slice(0, 6)), ` and ${ends.length - 6} more`] : list(ends);
  };
  const isDerived = names.some((name) => columnParents(node.name, name).length);
  const columns = [
    ["column", (name) => link(name, route("column", node.name, name))],
    ["type", (name) => types[name] && typeText(types[name])],
    ["about", (name) => about[name] && brief(about[name])],
    ["comes from", (name) => isDerived && from(name)],
  ];
  return [
    words ? make("p", { class: "quiet" }, "Where columns come from: ", words, ".") : null,
    tableOf(columns, names, "columns"),
  ];
}

function typeText(type) {
  return make("code", { class: type.length > 26 ? "long" : "" }, type);
}

// The columns of the tables of a source, as far as they are known: the members of both images.
function tablesOf(node) {
  const owner = node.type === "source" ? childrenOf(node.name)[0] : node.name;
  const rows = (columns) => Object.entries(columns).map(([column, type]) => [link(column, route("column", owner, "after", column)), typeText(type)]);
  return [
    make("p", { class: "quiet" }, inline("The columns that are known of each table: the members of `before` and `after`, with their types in the database.")),
    node.tables.map(({ name, key, columns }) => make("details", { class: "code" },
      make("summary", {}, name, make("span", { class: "quiet" }, ` ${numberText(Object.keys(columns).length)} columns${key.length ? `, key ${key.join(", ")}` : ""}`)),
      table(["column", "type"], rows(columns), `columns of ${name}`))),
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

function columnPage(name, ...column) {
  const node = NODES.get(name);
  const shown = columnName(...column);
  if (!node || !node.columns || !node.columns.names.includes(column[0])) return missing(`${name}.${shown}`);
  const key = (one) => JSON.stringify(one);
  const seen = new Map([[key([name, ...column]), [name, ...column]]]);
  const arrows = [];
  const follow = (step, arrowOf) => {
    const queue = [[name, ...column]];
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
  const boxes = [...seen].map(([id, [owner, ...own]]) => ({ id, title: columnName(...own), note: NODES.get(owner).label, kind: NODES.get(owner).type, status: "", href: route("column", owner, ...own) }));
  const type = column.length === 1 && node.columns.types[shown];
  return {
    title: `${node.label}.${shown}`,
    content: [
      heading("column", `${node.label}.${shown}`),
      node.columns.about[shown] ? markdown(node.columns.about[shown]) : null,
      make("p", {}, type ? [make("code", {}, type), ", a column of "] : "A column of ", link(node.label, nodeHref(name)), node.columns.words ? `; ${node.columns.words}.` : "."),
      section("Where it comes from, and what comes from it", picture(boxes, arrows.filter((arrow) => arrow.every((id) => seen.has(id))), `lineage of ${shown}`, { focus: key([name, ...column]) })),
      node.format && FORMATS.has(node.format) ? make("p", {}, "Where in the message: ", link(`the format ${node.format}`, route("format", node.format))) : null,
    ],
  };
}

function formatPage(name) {
  const format = FORMATS.get(name);
  if (!format) return missing(name);
  const { spec, mapping } = DATA.texts.formats[name];
  const used = DATA.nodes.filter((node) => node.type === "source" && node.format === name);
  return {
    title: name,
    content: [
      heading("format", name),
      markdown(format.about),
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

function searchPage(query) {
  const hits = found(query);
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
