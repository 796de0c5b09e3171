// A picture of boxes and arrows that one can zoom, scroll and click through, with the mouse, fingers or the keyboard.

// At the scale `readable` the smallest text has 11 pixels: a picture begins no smaller, and is scrolled.
const ZOOM = { least: 0.08, readable: 0.92, most: 3, step: 1.25 };

// `boxes` are {id, title, note, kind, status, href}, or have `open` in place of an address: what a click does. The one
// with the id `focus` stands out, and the picture begins `at` it, or at the first. A `tall` picture takes the height of
// the window. `tools` are more buttons.
function picture(boxes, arrows, label, { focus = "", at = focus, tall = false, tools = [] } = {}) {
  const plan = laidOut(boxes, arrows);
  const svg = makeSvg("svg", { role: "group", "aria-label": label, viewBox: `0 0 ${plan.width} ${plan.height}` },
    plan.arrows.map((arrow) => makeSvg("path", { class: "arrow", d: arrow.path, "data-from": arrow.from, "data-to": arrow.to })),
    plan.boxes.map((box) => drawnBox(box, box.id === focus)));
  const frame = make("div", { class: tall ? "picture tall" : "picture", tabindex: "0", role: "region", "aria-label": label }, svg);
  const hint = make("span", { class: "quiet" }, "scroll to see the rest");
  let scale = 1;
  const sized = (to) => {
    scale = Math.min(ZOOM.most, Math.max(ZOOM.least, to));
    svg.setAttribute("width", plan.width * scale);
    svg.setAttribute("height", plan.height * scale);
    hint.hidden = frame.scrollWidth <= frame.clientWidth && frame.scrollHeight <= frame.clientHeight;
  };

  // The point `middle` of the frame shows the same place before and after.
  function zoom(factor, middle = { x: frame.clientWidth / 2, y: frame.clientHeight / 2 }) {
    const place = { x: (frame.scrollLeft + middle.x) / scale, y: (frame.scrollTop + middle.y) / scale };
    sized(scale * factor);
    frame.scrollTo(place.x * scale - middle.x, place.y * scale - middle.y);
  }

  function fit(least) {
    if (!frame.clientWidth) return;
    const wide = frame.clientWidth / plan.width;
    sized(Math.max(least, Math.min(1.1, tall ? Math.min(wide, frame.clientHeight / plan.height) : wide)));
    const begin = plan.boxes.reduce((one, other) => (other.x < one.x ? other : one), plan.boxes[0]);
    const chosen = plan.boxes.find((box) => box.id === at) || begin;
    frame.scrollTo(chosen.x * scale - frame.clientWidth / 2, chosen.y * scale - frame.clientHeight / 2);
  }

  const button = (text, name, action) => make("button", { type: "button", "aria-label": name, title: name, onclick: action }, text);
  draggable(frame, svg);
  frame.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    const place = frame.getBoundingClientRect();
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * 0.01), { x: event.clientX - place.left, y: event.clientY - place.top });
  }, { passive: false });
  frame.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoom(ZOOM.step);
    else if (event.key === "-") zoom(1 / ZOOM.step);
    else if (event.key === "0") fit(0);
  });
  lightsUp(svg, plan);
  let width = 0;
  new ResizeObserver(() => {
    if (frame.clientWidth !== width) fit(ZOOM.readable);
    width = frame.clientWidth;
  }).observe(frame);
  return make("div", { class: "pictured" }, make("div", { class: "tools" }, hint, tools.map((tool) => button(...tool)),
    button("+", "zoom in", () => zoom(ZOOM.step)), button("−", "zoom out", () => zoom(1 / ZOOM.step)),
    button("⤢", "show all", () => fit(0))), frame);
}

function drawnBox(box, isFocus) {
  const left = box.x - box.width / 2;
  const top = box.y - BOX_HEIGHT / 2;
  const status = box.status ? `, ${box.status}` : "";
  const card = (by) => makeSvg("rect", { class: "card", x: left + by, y: top + by, width: box.width, height: BOX_HEIGHT, rx: 7 });
  const act = box.open && {
    role: "button", tabindex: "0", "aria-expanded": "false", onclick: box.open,
    onkeydown: (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); box.open(); } },
  };
  return makeSvg("a", { href: box.href, class: `box ${box.kind}${isFocus ? " focus" : ""}`, "data-id": box.id, ...act },
    makeSvg("title", {}, `${box.title} (${box.note}${status})`), box.open ? [card(6), card(3)] : null, card(0),
    makeSvg("rect", { class: "stripe", x: left, y: top + 7, width: 4, height: BOX_HEIGHT - 14, rx: 2 }),
    makeSvg("text", { class: "title", x: left + 14, y: top + 18 }, shortened(box.title)),
    makeSvg("text", { class: "note", x: left + 14, y: top + 34 }, box.note),
    box.status ? makeSvg("circle", { class: `dot ${box.status}`, cx: left + box.width - 11, cy: top + 12, r: 4 }) : null);
}

// Dragging with the mouse scrolls, as fingers do by themselves; a drag is not a click.
function draggable(frame, svg) {
  let moved = 0;
  let last = null;
  svg.addEventListener("pointerdown", (event) => {
    last = event;
    moved = 0;
  });
  frame.addEventListener("pointermove", (event) => {
    if (!last || event.pointerType !== "mouse" || event.buttons !== 1) return;
    moved += Math.hypot(event.clientX - last.clientX, event.clientY - last.clientY);
    frame.scrollBy(last.clientX - event.clientX, last.clientY - event.clientY);
    last = event;
  });
  svg.addEventListener("click", (event) => {
    if (moved <= 6) return;
    event.preventDefault();
    event.stopPropagation();
  }, true);
  svg.addEventListener("dragstart", (event) => event.preventDefault());
}

// Under the pointer or with the focus, a box shows what it comes from and what comes from it.
function lightsUp(scene, plan) {
  const ends = (from, to) => {
    const map = new Map();
    for (const arrow of plan.arrows) map.set(arrow[from], [...(map.get(arrow[from]) || []), arrow[to]]);
    return map;
  };
  const up = ends("to", "from");
  const down = ends("from", "to");
  const reach = (id, map) => {
    const seen = new Set([id]);
    for (const one of seen) (map.get(one) || []).forEach((next) => seen.add(next));
    return seen;
  };
  const light = (id) => {
    const above = reach(id, up);
    const below = reach(id, down);
    scene.classList.add("lit");
    for (const box of scene.querySelectorAll(".box")) box.classList.toggle("on", above.has(box.dataset.id) || below.has(box.dataset.id));
    for (const arrow of scene.querySelectorAll(".arrow")) {
      const { from, to } = arrow.dataset;
      arrow.classList.toggle("on", (above.has(from) && above.has(to)) || (below.has(from) && below.has(to)));
    }
  };
  const off = () => scene.classList.remove("lit");
  for (const box of scene.querySelectorAll(".box")) {
    box.addEventListener("pointerenter", () => light(box.dataset.id));
    box.addEventListener("pointerleave", off);
    box.addEventListener("focus", () => light(box.dataset.id));
    box.addEventListener("blur", off);
  }
}

// --- nodes

// So many nodes that are alike are one box, which a click takes apart.
const GROUP_FROM = 7;
const SEVERAL = { "history of a mirror": "histories of mirrors", "view of all sources": "views of all sources", "changelog of a source": "changelogs of sources", query: "queries" };

function boxOf(node) {
  const note = node.type === "source" ? `source, ${node.format || "a table"}` : node.kind;
  return { id: node.name, title: node.label, note, kind: node.type, status: statusOf(node.name), href: nodeHref(node.name) };
}

// Name -> the group that it is in, or itself. Alike are nodes of one kind that read the same, or read alike nodes; and
// those that have failed are not hidden among others. `apart` are the names that are in no group.
function groupsOf(names, apart) {
  const groups = new Map([...names].map((name) => [name, name]));
  for (let isNew = true; isNew;) {
    const alike = new Map();
    isNew = false;
    for (const name of names) {
      const node = NODES.get(name);
      const read = [...new Set(node.parents.filter((parent) => names.has(parent)).map((parent) => groups.get(parent)))].sort();
      const id = JSON.stringify([isTest(node) ? "test" : node.kind, FAILED.includes(statusOf(name)), ...read]);
      if (read.length && !apart.has(name)) alike.set(id, [...(alike.get(id) || []), name]);
    }
    for (const [id, members] of alike) {
      if (members.length < GROUP_FROM || members.every((name) => groups.get(name) === id)) continue;
      members.forEach((name) => groups.set(name, id));
      isNew = true;
    }
  }
  return groups;
}

function groupBox(id, members, open) {
  const [kind, , ...read] = JSON.parse(id);
  const worst = [...FAILED, "warn", "skipped", "success", "pass", ""].find((status) => members.some((name) => statusOf(name) === status));
  const of = read.length === 1 && NODES.has(read[0]) ? `of ${NODES.get(read[0]).label.replace(/_to_changelog$/, "")}, click to see them` : "click to see them";
  return { id, title: `${members.length} ${SEVERAL[kind] || `${kind}s`}`, note: of, kind: NODES.get(members[0]).type, status: worst, open };
}

function pictureOf(names, label, { focus = "", tall = false } = {}) {
  const holder = make("div", {});
  const draw = (apart, at = focus) => {
    const groups = groupsOf(names, apart);
    const members = new Map();
    for (const [name, id] of groups) members.set(id, [...(members.get(id) || []), name]);
    const boxes = [...members].map(([id, inside]) => inside[0] === id ? boxOf(NODES.get(id)) : groupBox(id, inside, () => open(new Set([...apart, ...inside]), inside[0])));
    const arrows = [...names].flatMap((name) => parentsOf(name).filter((parent) => names.has(parent)).map((parent) => [groups.get(parent), groups.get(name)]));
    const tools = apart.size > 1 || (apart.size && !focus) ? [["fold", "show groups again", () => open(new Set(focus ? [focus] : []))]] : [];
    holder.replaceChildren(picture(boxes, arrows, label, { focus, at, tall, tools }));
  };
  const open = (...how) => {
    draw(...how);
    holder.querySelector(".picture").focus({ preventScroll: true });
  };
  draw(new Set(focus ? [focus] : []));
  return holder;
}
