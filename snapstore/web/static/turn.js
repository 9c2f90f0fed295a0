// One turn as a person reads it: the prompt, thoughts, tool calls and replies, and the changed files.

import { clip, coded, firstLine, h, visible } from "./dom.js";
import { between, diffView } from "./diff.js";
import { state } from "./state.js";

const LONG = 1600; // characters of a reply shown before it is folded

/** Creates a fold that keeps its state while rows come and go. */
export function fold(key, props, summary, content) {
  const element = h("details", { ...props, open: state.opened.has(key) }, h("summary", null, summary));
  const load = () => {
    if (element.childElementCount === 1) element.append(content());
  };
  if (state.opened.has(key)) load();
  element.addEventListener("toggle", () => {
    if (element.open) {
      state.opened.add(key);
      load();
    } else {
      state.opened.delete(key);
    }
  });
  return element;
}

const text = (value) =>
  typeof value === "string" ? value : typeof value?.text === "string" ? value.text : JSON.stringify(value, null, 1);

export function prose(value, key, kind) {
  const whole = visible(text(value)).trim();
  if (whole.length <= LONG) return h("div", { class: kind, dir: "auto" }, paragraphs(whole));
  const cut = whole.slice(0, LONG);
  return h(
    "div",
    { class: kind, dir: "auto" },
    paragraphs(`${cut}…`),
    fold(`${key}:rest`, { class: "fold" }, `Show all ${whole.length.toLocaleString("en")} characters`, () =>
      h("div", { class: "rest" }, whole),
    ),
  );
}

/** Keeps blocks between ``` fences as they are and sets inline `code` apart. No other markup is interpreted. */
function paragraphs(whole) {
  return whole.split(/^```[^\n]*\n?/m).map((part, number) => {
    if (number % 2) return h("pre", { class: "block" }, part.replace(/\n$/, ""));
    const trimmed = part.replace(/^\n+|\n+$/g, "");
    return (
      trimmed &&
      h(
        "p",
        null,
        coded(trimmed),
      )
    );
  });
}

/**
 * Draws a turn. Its record is a note that anyone can write, so a malformed one must not prevent the rest from being
 * drawn.
 */
export function turnBody(node, detail) {
  const asked = h("div", { class: "prompt", dir: "auto" }, h("p", null, firstLine(node.prompt) || "(no prompt)"));
  if (!detail) return [asked, h("div", { class: "waiting", "aria-hidden": "true" })];
  try {
    return recorded(node, detail);
  } catch {
    return [asked, h("p", { class: "notice bad" }, "The record of this turn cannot be read."), fileList(node, detail)];
  }
}

function recorded(node, detail) {
  const key = node.commit;
  const thinking = detail.thinking || [];
  const calls = detail.tool_calls || [];
  return [
    node.kind === "turn" && prose(detail.prompt || "(no prompt)", `${key}:prompt`, "prompt"),
    node.kind !== "turn" && h("p", { class: "deed" }, firstLine(detail.prompt || node.prompt)),
    thinking.length > 0 &&
      fold(
        `${key}:thinking`,
        { class: "thinking" },
        `Thinking${thinking.length > 1 ? ` (${thinking.length})` : ""}`,
        () =>
          h(
            "div",
            { class: "thoughts", dir: "auto" },
            thinking.map((part) => h("p", null, visible(text(part)).trim())),
          ),
      ),
    calls.length > 0 && toolCalls(key, calls),
    (detail.replies || []).map((part, number) => prose(part, `${key}:reply${number}`, "reply")),
    fileList(node, detail),
    remarks(detail),
  ];
}

function toolCalls(key, calls) {
  const list = () =>
    h(
      "ul",
      { class: "calls" },
      calls.map((call, number) => h("li", null, toolCall(`${key}:call${number}`, call))),
    );
  if (calls.length <= 4) return list();
  return fold(`${key}:calls`, { class: "fold" }, `${calls.length} tool calls`, list);
}

/** Shows a tool call: `Edit app.py`, `Bash npm test`. */
function toolCall(key, found) {
  const call = found && typeof found === "object" ? found : { name: text(found) };
  const input = call.input && typeof call.input === "object" ? call.input : {};
  const on =
    below(call.file_path) || input.command || input.pattern || input.query || input.url || input.description || "";
  const summary = [
    h("span", { class: "tool" }, visible(text(call.name || call.type || "tool"))),
    h("span", { class: "on" }, clip(firstLine(Array.isArray(on) ? on.join(" ") : text(on)), 160)),
    call.is_error && h("span", { class: "badge bad" }, "failed"),
  ];
  const parts = () => {
    const found = [];
    if (call.old_string) found.push(h("pre", { class: "block old" }, visible(text(call.old_string))));
    if (call.new_string) found.push(h("pre", { class: "block new" }, visible(text(call.new_string))));
    if (call.content) found.push(h("pre", { class: "block" }, visible(text(call.content))));
    if (!found.length && call.input !== undefined) {
      const given = typeof call.input === "string" ? call.input : input.command || JSON.stringify(call.input, null, 2);
      found.push(h("pre", { class: "block" }, visible(Array.isArray(given) ? given.join(" ") : text(given))));
    }
    if (call.result)
      found.push(h("p", { class: "label" }, "Result"), h("pre", { class: "block" }, visible(text(call.result))));
    return h(
      "div",
      { class: "call-body" },
      found.length ? found : h("p", { class: "muted" }, "Nothing more is recorded."),
    );
  };
  return fold(key, { class: "call" }, summary, parts);
}

const below = (path) =>
  typeof path === "string" && path.startsWith(`${state.root}/`) ? path.slice(state.root.length + 1) : path;

const CHANGES = { A: "created", M: "changed", D: "deleted", R: "renamed", T: "type changed" };

/** Returns the files as people read them: a renamed file once, with its old path. */
export const asRead = (files) =>
  files
    .filter((file) => !file.renamed_to)
    .map((file) => {
      const was = file.renamed_from;
      return was ? { ...file, change: "R", added: was.added, removed: was.removed } : file;
    });

export function counts(file) {
  if (file.binary || file.large)
    return h("span", { class: "counts" }, file.large ? "too large to compare" : "binary");
  return h(
    "span",
    { class: "counts" },
    file.added ? h("span", { class: "plus" }, `+${file.added.toLocaleString("en")}`) : null,
    file.removed ? h("span", { class: "minus" }, `−${file.removed.toLocaleString("en")}`) : null,
  );
}

export function pathName(path) {
  const shown = visible(path).replace(/[\t\n]/g, (mark) => (mark === "\n" ? "␊" : "␉"));
  const cut = shown.lastIndexOf("/") + 1;
  return h(
    "bdi",
    { class: "path" },
    cut > 0 && h("span", { class: "folder" }, shown.slice(0, cut)),
    h("span", null, shown.slice(cut)),
  );
}

/** Lists files with their counts. Each opens its diff in place. */
export function fileList(node, detail) {
  const files = asRead(detail.files || []);
  if (!files.length || node.kind === "baseline") return null;
  return h(
    "ul",
    { class: "files", "aria-label": "Files changed" },
    files.map((file) =>
      h(
        "li",
        null,
        fold(
          `${node.commit}:file:${file.path}`,
          { class: "file" },
          [
            h(
              "span",
              { class: `change change-${file.change}`, title: CHANGES[file.change] },
              file.change,
              h("span", { class: "for-readers" }, ` ${CHANGES[file.change] || ""} `),
            ),
            file.renamed_from && h("span", { class: "was" }, pathName(file.renamed_from.path), " → "),
            pathName(file.path),
            counts(file),
          ],
          () => diffView(file.path, between(state.session, node.parent || node.commit, node.commit, file)),
        ),
      ),
    ),
  );
}

function remarks(detail) {
  const found = [
    ...(detail.left_out || []).map((item) => `Left out: ${item.path} (${item.why})`),
    ...(detail.first_seen || []).map((path) => `First seen in this turn: ${path}. Undo leaves it alone.`),
    ...(detail.unknown || []).map(
      (item) => `Not known from the conversation: ${item.path || "any file"} (${item.why})`,
    ),
  ];
  if (detail.user_git && Object.keys(detail.user_git).length)
    found.push("Your own git repository changed during this turn. Undo does not change it back.");
  return (
    found.length > 0 &&
    h(
      "ul",
      { class: "remarks" },
      found.map((line) => h("li", null, visible(line))),
    )
  );
}
