// The search results and the statistics.

import { readStats, search } from "./api.js";
import { bytes, clip, coded, fill, h, plural, refusalText, visible } from "./dom.js";
import { keySetting } from "./keys.js";
import { state } from "./state.js";

const WHERE = { prompt: "prompt", path: "file", reply: "reply" };

/** Highlights the searched text. */
function marked(text, wanted) {
  const shown = visible(text);
  const at = shown.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0) return [clip(shown, 220)];
  const from = Math.max(0, at - 60);
  return [
    from ? "…" : "",
    shown.slice(from, at),
    h("mark", null, shown.slice(at, at + wanted.length)),
    clip(shown.slice(at + wanted.length), 160),
  ];
}

export async function searchPanel(wanted, go, signal) {
  const { hits } = await search(state.session, wanted, signal);
  return h(
    "div",
    { class: "sheet" },
    h(
      "h2",
      null,
      hits.length ? `${plural(hits.length, "hit")} for “${visible(wanted)}”` : `Nothing found for “${visible(wanted)}”`,
    ),
    !hits.length &&
      h("p", { class: "muted" }, "Prompts, replies and paths of this session are searched, on all branches."),
    h(
      "ul",
      { class: "hits" },
      hits.map((hit) =>
        h(
          "li",
          null,
          h(
            "button",
            { type: "button", class: "hit", onclick: () => go(hit.commit) },
            h(
              "span",
              { class: "hit-head" },
              hit.turn === null ? "Edits" : `Turn ${hit.turn}`,
              h("span", { class: "badge" }, WHERE[hit.where] || hit.where),
              h("span", { class: "muted" }, visible(hit.branch || "")),
            ),
            h("span", { class: "hit-text", dir: "auto" }, marked(hit.text, wanted)),
          ),
        ),
      ),
    ),
  );
}

export function statsPanel() {
  const body = h("div", { class: "tiles" }, h("p", { class: "muted" }, "Counting…"));
  const remarks = h("div");
  readStats().then(
    (found) => {
      const share = (part, whole) => (whole ? `${Math.round((100 * part) / whole)} %` : "none yet");
      const tile = (value, label, note) =>
        h("div", { class: "tile" }, h("strong", null, value), h("span", null, label), note && h("small", null, note));
      const {
        sessions,
        sessions_rewound: rewound,
        branches_per_session: branches,
        moves,
        refused_moves: refused,
      } = found;
      fill(
        body,
        tile(sessions.toLocaleString("en"), sessions === 1 ? "session" : "sessions"),
        tile(share(rewound, sessions), "with a rewind", `${rewound} of ${sessions}`),
        tile(branches.toLocaleString("en", { maximumFractionDigits: 1 }), branches === 1 ? "branch per session" : "branches per session"),
        tile(moves.toLocaleString("en"), moves === 1 ? "move" : "moves"),
        tile(share(refused, moves + refused), "refused", `${refused} of ${moves + refused}`),
        tile(bytes(found.size_bytes), "store size", found.max_store_size > 0 && `of ${bytes(found.max_store_size)}`),
      );
      fill(remarks, health(found.health));
    },
    (error) => fill(body, h("p", { class: "notice bad" }, refusalText(error))),
  );
  return h(
    "div",
    { class: "sheet" },
    h("h2", null, "Statistics"),
    h("p", { class: "muted" }, "Computed from this store. Nothing leaves this machine."),
    body,
    remarks,
    h("h3", null, "Settings"),
    keySetting(),
  );
}

function health(found) {
  const problems = [
    ...found.problems.map((one) =>
      Object.values(one)
        .filter((part) => typeof part === "string")
        .join(": "),
    ),
    ...found.hook_errors.map((line) => `Hook: ${line}`),
  ];
  if (found.ok && !problems.length)
    return h(
      "p",
      { class: "notice good" },
      "The store is healthy.",
      !found.checked && coded(" For a check of every object: `snapstore check`."),
    );
  return h(
    "ul",
    { class: "remarks" },
    problems.map((problem) => h("li", null, visible(problem))),
  );
}
