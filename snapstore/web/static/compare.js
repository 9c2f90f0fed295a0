// Two lines side by side: their fork point, the turns of each since then, and the files that differ (S1-40..S1-42).

import { readComparison } from "./api.js";
import { complain, dialogHead, openDialog } from "./dialogs.js";
import { between, diffView } from "./diff.js";
import { filesText, firstLine, h, time, turnsText, visible } from "./dom.js";
import { state } from "./state.js";
import { counts, fold, pathName, prose } from "./turn.js";

const TURNS = 30;

export async function openComparison(a, b) {
  let found;
  try {
    found = await readComparison(state.session, a, b);
  } catch (error) {
    complain(error);
    return;
  }
  await openDialog(
    (close) => [
      dialogHead("Compare branches", close),
      h(
        "div",
        { class: "compare" },
        parted(found),
        h("div", { class: "two" }, side(found.a), side(found.b)),
        files(found),
      ),
    ],
    { kind: "wide" },
  );
}

function parted(found) {
  const place = found.parted_at.turn ? `turn ${found.parted_at.turn}` : "the start";
  return h(
    "div",
    { class: "parted" },
    h("span", { class: "badge accent" }, `Diverged after ${place}`),
    h("span", { dir: "auto" }, firstLine(found.parted_at.prompt)),
    time(found.parted_at.ended_at),
  );
}

function side(one) {
  const hidden = one.turns_since.length - TURNS;
  return h(
    "section",
    { class: "side" },
    h("h3", null, h("bdi", null, visible(one.branch || one.address))),
    h(
      "p",
      { class: "muted" },
      `${turnsText(one.turns_since.length)} since, ${filesText(one.files_changed)} `,
      counts(one),
    ),
    hidden > 0 && h("p", { class: "muted" }, `… ${turnsText(hidden)} before`),
    h(
      "ol",
      { class: "since" },
      one.turns_since
        .slice(-TURNS)
        .map((turn) => h("li", { value: turn.turn }, firstLine(turn.prompt) || "(no prompt)")),
    ),
    one.last_message &&
      one.turns_since.length > 0 &&
      h(
        "div",
        { class: "last" },
        h("p", { class: "label" }, "Last message"),
        prose(one.last_message, `compare:${one.commit}`, "reply"),
      ),
  );
}

function files(found) {
  if (!found.files.length) return h("p", { class: "muted" }, "Neither has changed a file since.");
  const words = {
    "only a": `only ${visible(found.a.address)}`,
    "only b": `only ${visible(found.b.address)}`,
    same: "same on both sides",
    different: "different",
  };
  return h(
    "section",
    { class: "paths" },
    h("h3", null, "Files ", h("span", { class: "count" }, found.files.length)),
    h(
      "ul",
      { class: "files" },
      found.files.map((file) =>
        h(
          "li",
          null,
          fold(
            `compare:${found.a.commit}:${found.b.commit}:${file.path}`,
            { class: "file" },
            [
              pathName(file.path),
              h(
                "span",
                { class: `badge ${file.outcome === "different" ? "warn" : ""}` },
                words[file.outcome] || file.outcome,
              ),
            ],
            () => diffView(file.path, between(state.session, found.a.commit, found.b.commit, file)),
          ),
        ),
      ),
    ),
  );
}
