// Code with colours: each piece becomes a text node in a span whose class says what it is.

const SQL_WORDS = new Set((
  "select from where group by order having limit with as on and or not in is null case when then else end join left " +
  "right full inner outer cross union all except intersect distinct over partition rows range between lateral view " +
  "filter exists like rlike using values true false asc desc struct map array cast try_cast create insert into set"
).split(" "));
const SQL_TOKEN = new RegExp([
  /(?<comment>--[^\n]*|\/\*[\s\S]*?\*\/|\{#[\s\S]*?#\})/, /(?<template>\{\{[\s\S]*?\}\}|\{%[\s\S]*?%\})/,
  /(?<string>'(?:[^'\\]|\\[\s\S])*')/, /(?<name>`[^`]*`)/, /(?<number>\b\d+(?:\.\d+)?\b)/, /(?<word>[A-Za-z_]\w*)/,
].map((part) => part.source).join("|"), "g");
const YAML_TOKEN = new RegExp([
  /(?<comment>(?<=^|\s)#[^\n]*)/, /(?<string>'(?:[^']|'')*'|"(?:[^"\\]|\\.)*")/,
  /(?<key>[\w.$+-]+(?=:(?:\s|$)))/, /(?<number>\b\d+(?:\.\d+)?\b)/,
].map((part) => part.source).join("|"), "gm");

function coloured(text, token, kindOf) {
  const out = document.createDocumentFragment();
  let end = 0;
  for (const found of text.matchAll(token)) {
    const [group] = Object.entries(found.groups).find(([, value]) => value !== undefined);
    const kind = kindOf(group, found);
    if (!kind) continue;
    out.append(text.slice(end, found.index), make("span", { class: `t-${kind}` }, found[0]));
    end = found.index + found[0].length;
  }
  out.append(text.slice(end));
  return out;
}

function sqlKind(group, found) {
  if (group !== "word") return group;
  if (SQL_WORDS.has(found[0].toLowerCase())) return "keyword";
  return found.input[found.index + found[0].length] === "(" ? "function" : "";
}

const LANGUAGES = {
  sql: (text) => coloured(text, SQL_TOKEN, sqlKind),
  yaml: (text) => coloured(text, YAML_TOKEN, (group) => group),
  text: (text) => document.createTextNode(text),
};

// A block that opens; its code is coloured when it first does.
function codeBlock(title, text, language, isOpen) {
  const code = make("code", {});
  const pre = make("pre", { tabindex: "0", role: "region", "aria-label": title }, code);
  const lines = text.trimEnd().split("\n").length;
  const fill = () => { if (!code.firstChild) code.append(LANGUAGES[language](text)); };
  const block = make("details", { class: "code", ontoggle: () => block.open && fill() },
    make("summary", {}, title, make("span", { class: "quiet" }, ` ${numberText(lines)} ${lines === 1 ? "line" : "lines"}`)), pre);
  if (isOpen) {
    block.open = true;
    fill();
  }
  return block;
}
