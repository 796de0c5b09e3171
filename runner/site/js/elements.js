"use strict";
// Making elements. Texts of a project become text nodes and nothing else, so no name or description is ever markup.

const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function makeSvg(tag, attributes, ...children) {
  return filled(document.createElementNS(SVG, tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(name, value);
  }
  element.append(...children.flat(3).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

// A link to a page of this file: route("node", "a/b") is "#/node/a%2Fb".
function route(...parts) {
  return "#/" + parts.map(encodeURIComponent).join("/");
}

function link(text, href, attributes) {
  return make("a", { href, ...attributes }, text);
}

// A link to somewhere else, or only its text if it is not on the web.
function outside(text) {
  return /^https?:\/\//i.test(text) ? make("a", { href: text, rel: "noopener noreferrer" }, text) : text;
}

function badge(text, kind) {
  return make("span", { class: `badge ${kind || ""}` }, text);
}

function table(heads, rows, label) {
  const head = make("tr", {}, heads.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map((cells) => make("tr", {}, cells.map((cell) => make("td", {}, cell))));
  const whole = make("table", {}, make("thead", {}, head), make("tbody", {}, body));
  return make("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, whole);
}

function section(title, ...children) {
  return make("section", {}, make("h2", {}, title), children);
}

function numberText(value) {
  return Number(value).toLocaleString("en");
}
