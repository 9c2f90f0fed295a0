// What is found, and what is counted.

import { readStats, search } from "./api.js";
import { bytes, clip, fill, h, plural, visible } from "./dom.js";
import { state } from "./state.js";

const WHERE = { prompt: "prompt", path: "file", reply: "reply" };

/** The text with what was looked for set apart. */
function marked(text, wanted) {
  const shown = visible(text);
  const at = shown.toLowerCase().indexOf(wanted.toLowerCase());
  if (at < 0) return [clip(shown, 220)];
  const from = Math.max(0, at - 60);
  return [from ? "…" : "", shown.slice(from, at), h("mark", null, shown.slice(at, at + wanted.length)), clip(shown.slice(at + wanted.length), 160)];
}

export async function searchPanel(wanted, go, signal) {
  const { hits } = await search(state.session, wanted, signal);
  return h(
    "div",
    { class: "sheet" },
    h("h2", null, hits.length ? `${plural(hits.length, "hit")} for “${visible(wanted)}”` : `Nothing found for “${visible(wanted)}”`),
    !hits.length && h("p", { class: "muted" }, "Prompts, replies and paths of this session are searched, on all branches."),
    h("ul", { class: "hits" }, hits.map((hit) =>
      h("li", null, h("button", { type: "button", class: "hit", onclick: () => go(hit.commit) }, h("span", { class: "hit-head" }, hit.turn === null ? "Edits" : `Turn ${hit.turn}`, h("span", { class: "badge" }, WHERE[hit.where] || hit.where), h("span", { class: "muted" }, visible(hit.branch || ""))), h("span", { class: "hit-text", dir: "auto" }, marked(hit.text, wanted)))),
    )),
  );
}

export function statsPanel() {
  const body = h("div", { class: "tiles" }, h("p", { class: "muted" }, "Counting…"));
  const remarks = h("div");
  readStats().then(
    (found) => {
      const share = (part, whole) => (whole ? `${Math.round((100 * part) / whole)} %` : "none yet");
      const tile = (value, label, note) => h("div", { class: "tile" }, h("strong", null, value), h("span", null, label), note && h("small", null, note));
      const rewound = found.sessions_with_rewind ?? found.rewound_sessions ?? 0;
      const branches = found.mean_branches ?? found.branches_per_session ?? 0;
      const moves = found.moves ?? 0;
      const refused = found.refused_moves ?? found.refused ?? 0;
      fill(
        body,
        tile((found.sessions ?? 0).toLocaleString("en"), "sessions"),
        tile(share(rewound, found.sessions), "with a rewind", `${rewound} of ${found.sessions ?? 0}`),
        tile(Number(branches).toLocaleString("en", { maximumFractionDigits: 1 }), "branches a session"),
        tile(moves.toLocaleString("en"), "moves"),
        tile(share(refused, moves + refused), "refused", `${refused} of ${moves + refused}; nothing was written`),
        tile(bytes(found.size_bytes), "store size"),
      );
      fill(remarks, health(found.health));
    },
    (error) => fill(body, h("p", { class: "notice bad" }, `${error.message} ${error.hint}`)),
  );
  return h("div", { class: "sheet" }, h("h2", null, "Statistics"), h("p", { class: "muted" }, "Counted here, from this store alone. Nothing leaves this machine."), body, remarks);
}

function health(found) {
  if (found === undefined || found === null) return null;
  const problems = Array.isArray(found) ? found : found.problems || (typeof found === "string" ? [found] : []);
  const well = found === "ok" || found === "healthy" || found.ok === true || problems.length === 0;
  if (well) return h("p", { class: "notice good" }, "The store is healthy.");
  return h("ul", { class: "remarks" }, problems.map((problem) => h("li", null, visible(typeof problem === "string" ? problem : problem.message || JSON.stringify(problem)))));
}
