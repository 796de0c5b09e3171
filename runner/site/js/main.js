// What the address says is shown: #/node/NAME, #/format/NAME, #/column/NODE/COLUMN, #/flow, #/search/TEXT.

const ROUTES = { "": overview, node: nodePage, format: formatPage, column: columnPage, flow: flowPage, search: searchPage };
const MAIN = document.getElementById("main");
const SEARCH = document.getElementById("search");
let isFirst = true;

function partsOfAddress() {
  try {
    return location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    return ["unknown"];
  }
}

function show() {
  const [kind, ...parts] = partsOfAddress();
  const page = Object.hasOwn(ROUTES, kind) ? ROUTES[kind](...parts) : missing(kind);
  document.title = page.title === DATA.project.name ? page.title : `${page.title} · ${DATA.project.name}`;
  MAIN.replaceChildren(...page.content.flat(3).filter(Boolean));
  document.body.classList.remove("open");
  document.getElementById("menu").setAttribute("aria-expanded", "false");
  for (const one of document.querySelectorAll("#nav a")) {
    if (one.getAttribute("href") === location.hash) one.setAttribute("aria-current", "page");
    else one.removeAttribute("aria-current");
  }
  if (kind !== "search") {
    SEARCH.value = "";
    window.scrollTo(0, 0);
    if (!isFirst) MAIN.querySelector("h1").focus({ preventScroll: true });
  }
  isFirst = false;
}

function navigation() {
  const item = (text, href, kind, status) => make("li", {}, link(text, href, { class: kind }), FAILED.includes(status) ? badge(status, status) : null);
  const group = (name, items, isOpen) => {
    const block = make("details", {}, make("summary", {}, name, make("span", { class: "quiet" }, ` ${numberText(items.length)}`)), make("ul", {}, items));
    block.open = isOpen;
    return block;
  };
  for (const [type, name] of GROUPS) {
    const nodes = DATA.nodes.filter((node) => node.type === type);
    if (nodes.length) document.getElementById("nav").append(group(name, nodes.map((node) => item(node.label, nodeHref(node.name), type, statusOf(node.name))), !type.endsWith("test") && nodes.length <= 60));
  }
  document.getElementById("nav").append(group("Formats", DATA.formats.map((format) => item(format.name, route("format", format.name), "format", "")), DATA.formats.length <= 12));
}

document.getElementById("menu").addEventListener("click", (event) => {
  const isOpen = document.body.classList.toggle("open");
  event.currentTarget.setAttribute("aria-expanded", String(isOpen));
});
SEARCH.addEventListener("input", () => {
  const address = route("search", SEARCH.value);
  if (partsOfAddress()[0] === "search") location.replace(address);
  else location.hash = address;
});
SEARCH.addEventListener("keydown", (event) => {
  const first = MAIN.querySelector(".found a");
  if (event.key === "Enter" && first && partsOfAddress()[0] === "search") location.hash = first.getAttribute("href");
  if (event.key === "ArrowDown" && first) {
    first.focus();
    event.preventDefault();
  }
});
MAIN.addEventListener("keydown", (event) => {
  const links = [...MAIN.querySelectorAll(".found a")];
  const at = links.indexOf(document.activeElement);
  if (at < 0 || !["ArrowDown", "ArrowUp"].includes(event.key)) return;
  (links[at + (event.key === "ArrowDown" ? 1 : -1)] || (at === 0 ? SEARCH : links[at])).focus();
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || /^(INPUT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
  SEARCH.focus();
  event.preventDefault();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address is that of a page, not of a place in it
  MAIN.focus();
});
unpacked().then(() => {
  window.addEventListener("hashchange", show);
  navigation();
  show();
});
