// The patch of one file, opened in place: unified or side by side. Images are shown as images.

import { readDiff } from "./api.js";
import { language, paint } from "./colour.js";
import { bytes, button, fill, h, refusalText, visible } from "./dom.js";

const MANY = 400; // rows shown before a person asks for the rest
const isImage = (side) => side?.type?.startsWith("image/");

let split = remembered();

function remembered() {
  try {
    return localStorage.getItem("diff") === "split";
  } catch {
    return false;
  }
}

/** Converts the server's rows to {kind: "head"|"hunk"|"same"|"old"|"new"|"note", text, old, new}. */
const rowsOf = (found) => (found.rows || []).map(([kind, old, now, text]) => ({ kind, text, old, new: now }));

/** Pairs runs of removed and added lines: [[old|null, new|null], …]. Other rows stay unpaired. */
function paired(rows) {
  const found = [];
  let at = 0;
  while (at < rows.length) {
    if (rows[at].kind !== "old" && rows[at].kind !== "new") {
      found.push(rows[at].kind === "same" ? [rows[at], rows[at]] : [rows[at]]);
      at += 1;
      continue;
    }
    const olds = [];
    const news = [];
    while (rows[at]?.kind === "old") olds.push(rows[at++]);
    while (rows[at]?.kind === "new") news.push(rows[at++]);
    for (let row = 0; row < Math.max(olds.length, news.length); row += 1) {
      const pair = [olds[row] || null, news[row] || null];
      if (pair[0] && pair[1]) mark(pair[0], pair[1]);
      found.push(pair);
    }
  }
  return found;
}

/** Marks what differs within two paired lines, if they have enough in common. */
function mark(a, b) {
  const shortest = Math.min(a.text.length, b.text.length);
  let head = 0;
  while (head < shortest && a.text[head] === b.text[head]) head += 1;
  let tail = 0;
  while (tail < shortest - head && a.text[a.text.length - 1 - tail] === b.text[b.text.length - 1 - tail]) tail += 1;
  if (head + tail < Math.max(a.text.length, b.text.length) * 0.3) return;
  a.marked = [head, a.text.length - tail];
  b.marked = [head, b.text.length - tail];
}

const LONG = 2000; // characters shown of a line: a minified file may be one line of millions

/** Paints the part of a line that contains the change. */
function written(element, row, tokens) {
  const [from, to] = row.marked || [0, 0];
  if (row.text.length <= LONG) return paint(element, row.text, tokens, row.marked);
  const start = Math.max(0, Math.min(from - 200, row.text.length - LONG));
  const marked = row.marked && [from - start, Math.min(to - start, LONG)];
  paint(element, row.text.slice(start, start + LONG), tokens, marked);
  if (start) element.prepend(h("span", { class: "cut-off" }, `${start.toLocaleString("en")} characters … `));
  const rest = row.text.length - start - LONG;
  if (rest) element.append(h("span", { class: "cut-off" }, ` … ${rest.toLocaleString("en")} characters more`));
  return element;
}

function cell(row, side, tokens) {
  const number = row ? row[side] : "";
  const text = h("td", { class: row ? `code ${row.kind === "same" ? "" : side}` : "code none" });
  if (row) written(text, row, tokens);
  return [h("td", { class: "line", "data-n": number ?? "" }), text];
}

function table(rows, path) {
  const tokens = language(path);
  const pairs = paired(rows);
  const body = h("tbody");
  const unified = (row) => {
    const text = h("td", { class: `code ${row.kind === "same" ? "" : row.kind}` });
    written(text, row, tokens);
    const sign = row.kind === "old" ? "−" : row.kind === "new" ? "+" : "";
    return h(
      "tr",
      null,
      h("td", { class: "line", "data-n": row.old ?? "" }),
      h("td", { class: "line", "data-n": row.new ?? "" }),
      h(
        "td",
        { class: `sign ${row.kind}`, "data-n": sign },
        sign && h("span", { class: "for-readers" }, row.kind === "old" ? "removed" : "added"),
      ),
      text,
    );
  };
  const lone = (row) => h("tr", { class: row.kind }, h("td", { colspan: "4" }, visible(row.text)));
  const makers = [];
  if (split) {
    for (const pair of pairs) {
      makers.push(() =>
        pair.length === 1 ? lone(pair[0]) : h("tr", null, cell(pair[0], "old", tokens), cell(pair[1], "new", tokens)),
      );
    }
  } else {
    for (const row of rows) makers.push(() => (row.kind === "hunk" || row.kind === "note" ? lone(row) : unified(row)));
  }
  const show = (from, to) => body.append(...makers.slice(from, to).map((make) => make()));
  show(0, MANY);
  const parts = [h("table", { class: split ? "diff split" : "diff" }, body)];
  if (makers.length > MANY) {
    const rest = button(
      `Show ${(makers.length - MANY).toLocaleString("en")} more lines`,
      () => {
        show(MANY, makers.length);
        rest.remove();
      },
      { kind: "quiet" },
    );
    parts.push(rest);
  }
  return parts;
}

function picture(side, caption) {
  if (!isImage(side) || !side.stored)
    return h(
      "figure",
      { class: "picture" },
      h("figcaption", null, side ? `${caption}: ${bytes(side.size)}` : `${caption}: does not exist`),
    );
  return h(
    "figure",
    { class: "picture" },
    h("img", {
      src: `api/blobs/${encodeURIComponent(side.oid)}?type=image`,
      alt: `The image ${caption.toLowerCase()}`,
      loading: "lazy",
    }),
    h("figcaption", null, `${caption}, ${bytes(side.size)}`),
  );
}

function shown(found) {
  if (isImage(found.old) || isImage(found.new)) {
    return [h("div", { class: "pictures" }, picture(found.old, "Before"), picture(found.new, "After"))];
  }
  if (found.binary || found.large) {
    const sizes = [found.old, found.new].map((side) => (side ? bytes(side.size) : "nothing"));
    const what = found.large ? "Too large to compare line by line" : "Binary";
    return [h("p", { class: "diff-note" }, `${what}: ${sizes[0]} became ${sizes[1]}.`)];
  }
  const rows = rowsOf(found);
  const lines = rows.filter((row) => row.kind !== "head");
  if (lines.length) return table(lines, found.path);
  const said = rows.map((row) => row.text).filter((text) => /^(old|new|deleted file|new file) mode \d+$/.test(text));
  return [h("p", { class: "diff-note" }, said.length ? said.join(", ") : "No lines differ.")];
}

const KEPT = 40;
const read = new Map(); // a cache of the last diffs: rows come and go while a person scrolls, but commits do not change

/** Reads the diff of a file between two commits. */
export function between(session, a, b, file) {
  const key = JSON.stringify([session, a, b, file.path]);
  if (!read.has(key)) {
    const answer = readDiff(session, a, b, file);
    answer.catch(() => read.delete(key));
    read.set(key, answer);
    if (read.size > KEPT) read.delete(read.keys().next().value);
  }
  return read.get(key);
}

/** Returns an element that shows the diff of a file as soon as the response arrives. */
export function diffView(path, answer) {
  const body = h("div", {
    class: "diff-body",
    tabindex: "0",
    role: "group",
    "aria-label": `Changes of ${visible(path)}`,
  });
  const choice = (label, wanted) =>
    h(
      "button",
      { type: "button", class: "segment", "aria-pressed": String(split === wanted), onclick: () => choose(wanted) },
      label,
    );
  const bar = h("div", { class: "diff-bar" });
  const view = h("div", { class: "diff-view" }, bar, body);
  let found = null;
  const draw = () => {
    const text = found && !found.binary && !found.large;
    fill(
      bar,
      text &&
        h(
          "div",
          { class: "segments", role: "group", "aria-label": "How to show changes" },
          choice("Unified", false),
          choice("Side by side", true),
        ),
    );
    bar.hidden = !text;
    if (found) fill(body, shown(found));
  };
  const choose = (wanted) => {
    split = wanted;
    try {
      localStorage.setItem("diff", wanted ? "split" : "unified");
    } catch {
      // the choice is just not remembered
    }
    draw();
  };
  fill(body, h("p", { class: "diff-note" }, "Reading…"));
  bar.hidden = true;
  answer.then(
    (differing) => {
      found = differing;
      draw();
    },
    (error) => fill(body, h("p", { class: "diff-note bad" }, refusalText(error))),
  );
  return view;
}
