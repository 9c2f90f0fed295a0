// Files that changed since: how to resolve each one, with its three sides (G-38).

import { merge } from "./api.js";
import { button, fill, h, refusalText, visible } from "./dom.js";
import { state } from "./state.js";
import { fold, pathName } from "./turn.js";

const WAYS = [
  ["mine", "Keep mine", "The file stays as it is on disk."],
  ["theirs", "Take theirs", "The file becomes the result of the move. Your version is saved first."],
  ["merge", "Merge", "Both changes in one file, if they do not touch the same lines."],
  ["markers", "Merge with markers", "Lines that clash are put between conflict markers, for you to edit."],
];

const SAME_LINES = "both sides changed the same lines"; // the only obstacle that conflict markers overcome

export function conflictList(dialog) {
  return h(
    "section",
    { class: "conflicts" },
    h("h3", null, "Changed since ", h("span", { class: "count" }, dialog.conflicts.length)),
    h(
      "p",
      { class: "muted" },
      "These files changed after the turns. What merges cleanly is merged, and your version is saved first. For the " +
        "others, choose what to keep.",
    ),
    dialog.conflicts.length > 1 && forAll(dialog),
    dialog.conflicts.map((item, number) => conflict(dialog, item, number)),
  );
}

function forAll(dialog) {
  return h(
    "div",
    { class: "for-all", role: "group", "aria-label": "The same choice for all files" },
    h("span", { class: "muted" }, "For all files:"),
    WAYS.filter(([way]) => way !== "markers").map(([way, label, about]) =>
      button(`${label}`, () => dialog.chooseAll(way), { kind: "small", title: about, "aria-label": `${label}, for all` }),
    ),
  );
}

function conflict(dialog, item, number) {
  const now = dialog.plan.conflicts.find((one) => one.path === item.path);
  const open = now && !now.settled_by ? now : null;
  // A clean merge needs no choice: it is what the move does by itself.
  const chosen = dialog.choices.get(item.path) ?? (now?.settled_by === "merge" ? "merge" : undefined);
  const failed = chosen && open?.why ? open.why : "";
  const why = dialog.reasons.get(item.path) ?? "";
  const useful = { merge: !why, markers: why === SAME_LINES };
  const offered = WAYS.filter(([way]) => chosen === way || (useful[way] ?? true));
  return h(
    "fieldset",
    { class: `conflict ${chosen && !open ? "resolved" : ""}` },
    h("legend", null, pathName(item.path)),
    h("p", { class: "muted", title: `Expected ${item.expected}, found ${item.found}, wanted ${item.wanted}` }, told(item)),
    // A choice that failed says so below.
    now?.settled_by === "merge"
      ? h("p", null, "Merges cleanly: the file keeps your changes.")
      : why && !failed && h("p", null, `Cannot be merged: ${visible(why)}.`),
    h(
      "div",
      { class: "ways", role: "radiogroup", "aria-label": `How to resolve ${visible(item.path)}` },
      offered.map(([way, label, about]) =>
        h(
          "label",
          { class: "choice", title: about },
          h("input", {
            type: "radio",
            name: `way-${number}`,
            value: way,
            checked: chosen === way,
            dataset: { focus: `way-${number}-${way}` },
            onchange: () => dialog.choose(item.path, way),
          }),
          label,
        ),
      ),
    ),
    failed && h("p", { class: "notice bad", role: "alert" }, `Cannot be resolved that way: ${visible(failed)}.`),
    fold(`conflict:${item.path}`, { class: "fold" }, "Show the three sides", () => sides(dialog, item)),
  );
}

function told({ changed_by: who, found, wanted }) {
  const file = /^(file|executable|link) /.test(found);
  const odd = found[0].toUpperCase() + found.slice(1); // a folder or a socket, described in words
  const now = found === "missing" ? " It no longer exists." : file ? "" : ` ${odd} is in its place.`;
  const then = wanted === "missing" ? "remove it" : found === "missing" ? "bring it back" : "change it";
  return visible(`Changed by ${who || "somebody"}.${now} The move would ${then}.`);
}

function sides(dialog, item) {
  const box = h("div", { class: "sides" }, h("p", { class: "muted" }, "Reading…"));
  merge(dialog.session, { ...dialog.withChoices(), path: item.path }).then(
    (found) => {
      const pane = (title, text, missing) =>
        h(
          "figure",
          null,
          h("figcaption", null, title),
          text === null
            ? h("p", { class: "muted" }, missing)
            : h("pre", { class: "block", tabindex: "0" }, against(found.base, text)),
        );
      fill(
        box,
        pane("As recorded", found.base, untold(item.expected)),
        pane("Mine, on disk", found.mine, untold(item.found)),
        pane("Theirs, after the move", found.theirs, untold(item.wanted)),
        pane(
          found.clean || found.merged === null ? "Merged" : "Merged, with markers",
          found.merged,
          `Cannot be merged: ${visible(found.why)}.`,
        ),
      );
    },
    (error) => fill(box, h("p", { class: "notice bad" }, refusalText(error))),
  );
  return box;
}

/** Says why a side has no text to show: missing, not text, or not a file. */
function untold(side) {
  if (side === "missing") return "does not exist";
  return /^(file|executable) /.test(side) ? "exists, but is not text" : visible(side);
}

/** Marks the lines that the base does not have. */
function against(base, text) {
  const known = new Set(String(base ?? "").split("\n"));
  return String(text)
    .split("\n")
    .map((line) => (known.has(line) ? `${visible(line)}\n` : h("mark", null, `${visible(line)}\n`)));
}
