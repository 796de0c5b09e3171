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
function outside(address, text = address) {
  return /^https?:\/\//i.test(address) ? make("a", { href: address, rel: "noopener noreferrer" }, text) : text;
}

function badge(text, kind) {
  return make("span", { class: `badge ${kind || ""}` }, text);
}

// The rows of a table of `cards` stand each for itself where there is little room.
function table(heads, rows, label, kind = "") {
  const head = make("tr", {}, heads.map((text) => make("th", { scope: "col" }, text)));
  const body = rows.map((cells) => make("tr", {}, cells.map((cell, index) => make("td", { "data-head": heads[index] }, cell))));
  const whole = make("table", {}, make("thead", {}, head), make("tbody", {}, body));
  return make("div", { class: `scroll ${kind}`, tabindex: "0", role: "region", "aria-label": label }, whole);
}

// A table of things by `columns`, each a head and what makes the cell of a thing; columns without any cell are left out.
function tableOf(columns, things, label, kind) {
  const cells = columns.map(([head, cell]) => [head, things.map((thing) => cell(thing) || "")]).filter(([, all]) => all.some(Boolean));
  return table(cells.map(([head]) => head), things.map((_, index) => cells.map(([, all]) => all[index])), label, kind);
}

function section(title, ...children) {
  return make("section", {}, make("h2", {}, title), children);
}

// Numbers and times as the commands print them: 1 234 567, and all times in UTC, which they say.

function numberText(value) {
  return Number(value).toLocaleString("en").replaceAll(",", "\u00a0");
}

const INSTANT = /(\d{4}-\d\d-\d\d)T(\d\d:\d\d:\d\d)(?:\.\d+)?(?:Z|\+00:00)/g;

// The text with each instant of ISO 8601 in it in this form; a number is an instant in seconds since 1970.
function timesIn(text) {
  return (typeof text === "number" ? new Date(text * 1000).toISOString() : text).replace(INSTANT, "$1 $2 UTC");
}

function time(instant) {
  return instant ? make("span", { class: "time" }, timesIn(instant)) : "";
}
