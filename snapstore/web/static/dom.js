// Elements are built from text only: no prompt, name or diff is ever interpreted as markup.

const SVG = "http://www.w3.org/2000/svg";

/** h("button", {class: "x", onclick: f, "aria-label": "…"}, "text", child, …) */
export function h(tag, props, ...children) {
  return filled(document.createElement(tag), props, children);
}

export function svg(tag, props, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "dataset") Object.assign(element.dataset, value);
    else if (name === "value") element.value = value;
    else if (name === "checked") element.checked = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const child of children) {
    if (child === undefined || child === null || child === false) continue;
    if (Array.isArray(child)) add(element, child);
    else element.append(child instanceof Node ? child : String(child));
  }
}

export function fill(element, ...children) {
  element.replaceChildren();
  add(element, children);
  return element;
}

export const byId = (id) => document.getElementById(id);

// Invisible characters that change what a person reads: control characters, and marks that change the text direction.
const UNSEEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u2069\u3164\ufeff\uffa0\u{e0000}-\u{e007f}]/gu;

export function visible(text) {
  return String(text ?? "").replace(UNSEEN, (mark) => {
    const code = mark.codePointAt(0);
    if (code < 32) return String.fromCodePoint(0x2400 + code);
    return `⟨${code.toString(16).toUpperCase().padStart(4, "0")}⟩`;
  });
}

export function firstLine(text) {
  return visible(
    String(text ?? "")
      .trimStart()
      .split("\n", 1)[0],
  );
}

/** Sets `code` in a text apart. */
export const coded = (text) =>
  String(text ?? "")
    .split(/(`[^`\n]+`)/)
    .map((piece) => (/^`[^`\n]+`$/.test(piece) ? h("code", null, piece.slice(1, -1)) : piece));

/** Returns the message and the hint of a refusal as sentences. */
export const refusalText = ({ message, hint }) =>
  coded(`${message}${/[.!?…]$/.test(message) ? "" : "."} ${hint || ""}`.trim());

/** Shows the owner of an item that came from another machine. */
export const owner = ({ machine, person }) =>
  machine ? h("span", { class: "owner", title: `From the machine ${visible(machine)}` }, visible(person || machine)) : null;

export function clip(text, length) {
  return text.length > length ? `${text.slice(0, length - 1).trimEnd()}…` : text;
}

/** Clips the middle and keeps both ends, because the end of a branch name distinguishes it from its parent. */
export function clipMiddle(text, length) {
  if (text.length <= length) return text;
  const tail = Math.floor(length / 3);
  return `${text.slice(0, length - tail - 1).trimEnd()}…${text.slice(-tail)}`;
}

export const plural = (number, word, many) =>
  `${number.toLocaleString("en")} ${number === 1 ? word : many || `${word}s`}`;
export const turnsText = (number) => plural(number, "turn");
export const filesText = (number) => plural(number, "file");

// Created once, because creating a formatter takes longer than the rest of a row.
const DAY = new Intl.DateTimeFormat("en", { day: "numeric", month: "short", year: "numeric" });
const WHOLE = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "medium" });

/** Shows `3 min ago`, with the full time in the element's title. */
export function time(iso, extra) {
  const at = new Date(iso);
  if (!iso || Number.isNaN(at.getTime())) return null;
  return h("time", { datetime: iso, title: WHOLE.format(at), ...extra }, ago(at));
}

export function ago(at) {
  const seconds = Math.max(0, (Date.now() - at.getTime()) / 1000);
  if (seconds < 45) return "just now";
  if (seconds < 3600) return `${Math.max(1, Math.round(seconds / 60))} min ago`;
  if (seconds < 86400) return plural(Math.round(seconds / 3600), "hour") + " ago";
  if (seconds < 86400 * 14) return plural(Math.round(seconds / 86400), "day") + " ago";
  return DAY.format(at);
}

export function bytes(number) {
  if (!Number.isFinite(number)) return "";
  if (number < 1000) return plural(number, "byte");
  const units = ["kB", "MB", "GB", "TB"];
  let at = -1;
  do {
    number /= 1000;
    at += 1;
  } while (number >= 999.5 && at < units.length - 1);
  return `${number.toFixed(number < 9.95 ? 1 : 0)} ${units[at]}`;
}

const ICONS = {
  restore: "M4 4v5h5M4.6 9A8 8 0 1 1 4 12.6",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  close: "M6 6l12 12M18 6L6 18",
  left: "M15 5l-7 7 7 7",
  right: "M9 5l7 7-7 7",
  down: "M6 9l6 6 6-6",
  menu: "M4 7h16M4 12h16M4 17h16",
  search: "M11 4a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM20 20l-4-4",
  fork: "M7 4v16M7 13c0-5 10-2 10-9",
  pin: "M12 3l8 9-8 9-8-9z",
  sun: "M12 8a4 4 0 1 1 0 8 4 4 0 0 1 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5",
  moon: "M20 14.5A8 8 0 0 1 9.5 4 8 8 0 1 0 20 14.5z",
  auto: "M12 3a9 9 0 1 0 0 18V3zM12 3a9 9 0 0 1 0 18",
  copy: "M9 9h10v11H9zM5 15V4h10",
};

export function icon(name) {
  return svg(
    "svg",
    { viewBox: "0 0 24 24", class: `icon i-${name}`, "aria-hidden": "true", focusable: "false" },
    svg("path", { d: ICONS[name] }),
  );
}

/** The fork sign. Few fonts have ⑂, so it is drawn, and also present as text for screen readers. */
export const forkSign = () => [icon("fork"), h("span", { class: "for-readers" }, "⑂")];

/** Creates a button named by its text, or by its label if it shows only an icon. */
export function button(label, onclick, { icon: name, kind = "", only = false, reason = "", ...props } = {}) {
  const off = reason ? { disabled: true, title: reason } : only ? { title: label } : {};
  return h(
    "button",
    {
      type: "button",
      class: only ? `icon-button ${kind}` : `button ${kind}`,
      "aria-label": only ? label : null,
      onclick,
      ...props,
      ...off,
    },
    name && icon(name),
    !only && label,
  );
}
