// Markdown as elements: paragraphs, headings, lists, code, emphasis, links. HTML in it stays text.

const INLINE = /`(?<code>[^`]+)`|\*\*(?<strong>[^*]+)\*\*|\*(?<em>[^*\s][^*]*)\*|\[(?<words>[^\]]+)\]\((?<href>[^)\s]+)\)|(?<url>https?:\/\/[^\s<>()]*[^\s<>().,;:!?])/g;
const ITEM = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)/;
const HEADING = /^#{1,6}\s+(.*)/;

function inline(text) {
  const out = [];
  let end = 0;
  for (const found of text.matchAll(INLINE)) {
    const { code, strong, em, words, href, url } = found.groups;
    out.push(text.slice(end, found.index));
    if (code) out.push(make("code", {}, code));
    else if (strong) out.push(make("strong", {}, inline(strong)));
    else if (em) out.push(make("em", {}, inline(em)));
    else out.push(outside(href || url, words));
    end = found.index + found[0].length;
  }
  return [...out, text.slice(end)];
}

function markdown(text) {
  const blocks = [];
  let open = null; // the block that takes the next line
  const begin = (tag, ...lines) => blocks.push((open = { tag, lines }));
  for (const line of text.trim().split("\n")) {
    const isFence = line.startsWith("```");
    const [item, heading] = [line.match(ITEM), line.match(HEADING)];
    if (open && open.tag === "pre") isFence ? (open = null) : open.lines.push(line);
    else if (isFence) begin("pre");
    else if (heading) begin("h3", heading[1]), (open = null);
    else if (item) {
      const tag = item[1] ? "ol" : "ul";
      open = blocks.at(-1);
      if (open && open.tag === tag) open.lines.push(item[2]);
      else begin(tag, item[2]);
    } else if (!line.trim()) open = null;
    else if (open) open.lines.push(`${open.lines.pop()} ${line.trim()}`);
    else begin("p", line);
  }
  return make("div", { class: "about" }, blocks.map(({ tag, lines }) =>
    tag === "pre" ? make("pre", {}, make("code", {}, lines.join("\n")))
      : tag.endsWith("l") ? make(tag, {}, lines.map((line) => make("li", {}, inline(line)))) : make(tag, {}, inline(lines[0]))));
}

// The first paragraph, for a cell of a table.
function brief(text) {
  return inline(text.trim().split(/\n\s*\n|\n(?=\s*[-*+]\s)/)[0].replace(/\s+/g, " "));
}
