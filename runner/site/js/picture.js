// A picture of boxes and arrows that one can zoom, move and click through, with the mouse, fingers or the keyboard.

const ZOOM = { least: 0.08, most: 3, step: 1.25 };

// `boxes` are {id, title, note, kind, status, href}; the one with the id `focus` stands out. A `tall` picture takes the
// height of the window.
function picture(boxes, arrows, label, { focus = "", tall = false } = {}) {
  const plan = laidOut(boxes, arrows);
  const scene = makeSvg("g", {},
    plan.arrows.map((arrow) => makeSvg("path", { class: "arrow", d: curve(arrow.points), "data-from": arrow.from, "data-to": arrow.to })),
    plan.boxes.map((box) => drawnBox(box, box.id === focus)));
  const svg = makeSvg("svg", { role: "group", "aria-label": label }, scene);
  const frame = make("div", { class: tall ? "picture tall" : "picture", tabindex: "0", role: "region", "aria-label": label });
  const view = { x: 0, y: 0, k: 1 };
  const show = () => scene.setAttribute("transform", `translate(${view.x},${view.y}) scale(${view.k})`);
  const middle = () => ({ x: frame.clientWidth / 2, y: frame.clientHeight / 2 });

  function zoom(factor, at = middle()) {
    const k = Math.min(ZOOM.most, Math.max(ZOOM.least, view.k * factor));
    view.x = at.x - ((at.x - view.x) * k) / view.k;
    view.y = at.y - ((at.y - view.y) * k) / view.k;
    view.k = k;
    show();
  }

  function fit() {
    const width = frame.clientWidth;
    if (!width) return;
    const wide = width / plan.width;
    view.k = Math.min(1.1, tall ? Math.min(wide, frame.clientHeight / plan.height) : Math.max(wide, 0.62));
    if (!tall) frame.style.height = `${Math.min(620, Math.max(90, plan.height * view.k + 8))}px`;
    const chosen = plan.boxes.find((box) => box.id === focus);
    const spare = width - plan.width * view.k;
    view.x = spare >= 0 || !chosen ? Math.max(0, spare / 2) : Math.min(0, Math.max(spare, width / 2 - chosen.x * view.k));
    const over = frame.clientHeight - plan.height * view.k;
    view.y = over >= 0 || !chosen ? Math.max(0, over / 2) : Math.min(0, Math.max(over, frame.clientHeight / 2 - chosen.y * view.k));
    show();
  }

  const button = (text, name, action) => make("button", { type: "button", "aria-label": name, title: name, onclick: action }, text);
  frame.append(svg, make("div", { class: "tools" },
    button("+", "zoom in", () => zoom(ZOOM.step)), button("−", "zoom out", () => zoom(1 / ZOOM.step)),
    button("⤢", "show all", fit)));
  movable(frame, svg, view, show, zoom, tall);
  keyed(frame, view, show, zoom, fit);
  lightsUp(scene, plan);
  new ResizeObserver(fit).observe(frame);
  return frame;
}

function drawnBox(box, isFocus) {
  const left = box.x - box.width / 2;
  const top = box.y - BOX_HEIGHT / 2;
  const status = box.status ? `, ${box.status}` : "";
  return makeSvg("a", { href: box.href, class: `box ${box.kind}${isFocus ? " focus" : ""}`, "data-id": box.id },
    makeSvg("title", {}, `${box.title} (${box.note}${status})`),
    makeSvg("rect", { class: "card", x: left, y: top, width: box.width, height: BOX_HEIGHT, rx: 7 }),
    makeSvg("rect", { class: "stripe", x: left, y: top + 7, width: 4, height: BOX_HEIGHT - 14, rx: 2 }),
    makeSvg("text", { class: "title", x: left + 14, y: top + 18 }, shortened(box.title)),
    makeSvg("text", { class: "note", x: left + 14, y: top + 33 }, box.note),
    box.status ? makeSvg("circle", { class: `dot ${box.status}`, cx: left + box.width - 11, cy: top + 12, r: 4 }) : null);
}

// Dragging with one pointer moves the picture, two pinch it; a drag is not a click.
function movable(frame, svg, view, show, zoom, tall) {
  const pointers = new Map();
  let moved = 0;
  const at = (event) => {
    const place = frame.getBoundingClientRect();
    return { x: event.clientX - place.left, y: event.clientY - place.top };
  };
  const distance = () => {
    const [one, other] = [...pointers.values()];
    return Math.hypot(one.x - other.x, one.y - other.y);
  };
  svg.addEventListener("pointerdown", (event) => {
    if (!pointers.size) moved = 0;
    pointers.set(event.pointerId, at(event));
  });
  window.addEventListener("pointermove", (event) => {
    const last = pointers.get(event.pointerId);
    if (!last || !frame.isConnected) return;
    const now = at(event);
    const before = pointers.size === 2 ? distance() : 0;
    pointers.set(event.pointerId, now);
    moved += Math.hypot(now.x - last.x, now.y - last.y);
    if (before) return zoom(distance() / before, now);
    view.x += now.x - last.x;
    view.y += now.y - last.y;
    show();
  });
  for (const end of ["pointerup", "pointercancel"]) window.addEventListener(end, (event) => pointers.delete(event.pointerId));
  svg.addEventListener("click", (event) => { if (moved > 6) event.preventDefault(); }, true);
  svg.addEventListener("dragstart", (event) => event.preventDefault());
  svg.addEventListener("wheel", (event) => {
    if (!tall && !event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.0015)), at(event));
  }, { passive: false });
}

function keyed(frame, view, show, zoom, fit) {
  const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
  frame.addEventListener("keydown", (event) => {
    if (event.key === "+" || event.key === "=") zoom(ZOOM.step);
    else if (event.key === "-") zoom(1 / ZOOM.step);
    else if (event.key === "0") fit();
    else if (moves[event.key] && event.target === frame) {
      view.x += moves[event.key][0];
      view.y += moves[event.key][1];
      show();
      event.preventDefault();
    }
  });
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

// The box of a node in a picture.
function boxOf(node) {
  const kind = node.facts.find(([name]) => name === "materialized" || name === "shows");
  const note = node.type === "source" ? `source, ${node.format}` : isTest(node) ? "test" : kind ? `${node.type}, ${kind[1]}` : node.type;
  return { id: node.name, title: node.label, note, kind: node.type, status: statusOf(node.name), href: nodeHref(node.name) };
}

function arrowsAmong(names) {
  return [...names].flatMap((name) => parentsOf(name).filter((parent) => names.has(parent)).map((parent) => [parent, name]));
}

function pictureOf(names, label, options) {
  return picture([...names].map((name) => boxOf(NODES.get(name))), arrowsAmong(names), label, options);
}
