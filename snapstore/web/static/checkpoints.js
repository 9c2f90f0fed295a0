// Checkpoints: create, list, go to, delete (S1-55).

import * as api from "./api.js";
import { askText, confirm } from "./dialogs.js";
import { button, firstLine, h, time, visible } from "./dom.js";
import { change, done, propose } from "./moves.js";
import { expected, standstill, state } from "./state.js";

export async function askCheckpoint(node) {
  const at = expected();
  await askText({
    title: `Checkpoint at ${node.turn === null ? "the start" : `turn ${node.turn}`}`,
    text: "A name for this state, which is then never pruned.",
    label: "Name",
    yes: "Create checkpoint",
    act: async (name) => {
      await api.addCheckpoint(state.session, { name, address: node.commit, expected: at });
      done(`Checkpoint ${visible(name)} created.`);
    },
  });
}

export function checkpointsPanel(go) {
  const nodes = (state.tree?.nodes || []).filter((node) => node.checkpoints.length);
  const rows = nodes.flatMap((node) => node.checkpoints.map((name) => [name, node]));
  return h(
    "div",
    { class: "sheet" },
    h("h2", null, "Checkpoints"),
    h(
      "p",
      { class: "muted" },
      rows.length
        ? "Turns that you named."
        : "No checkpoints yet. Right-click a turn and choose “Checkpoint…” to name it.",
    ),
    rows.length > 0 &&
      h(
        "ul",
        { class: "cards" },
        rows.map(([name, node]) =>
          h(
            "li",
            { class: "card" },
            h(
              "div",
              { class: "card-text" },
              h("strong", null, "◆ ", h("bdi", null, visible(name))),
              h(
                "p",
                { class: "muted" },
                node.turn === null ? "Start" : `Turn ${node.turn}`,
                ` on ${visible(node.branch)} · `,
                firstLine(node.prompt),
                " · ",
                time(node.ended_at),
              ),
            ),
            button("Show", () => go(node), { kind: "small" }),
            button("Restore", () => propose({ move: "goto", address: node.commit }), {
              kind: "small",
              reason: standstill(),
              "aria-label": `Restore to checkpoint ${visible(name)}`,
            }),
            button("Delete", () => remove(name), {
              kind: "small quiet",
              "aria-label": `Delete checkpoint ${visible(name)}`,
            }),
          ),
        ),
      ),
  );
}

async function remove(name) {
  if (
    !(await confirm({
      title: `Delete checkpoint ${visible(name)}?`,
      text: "Only the name is deleted. The turn stays.",
      yes: "Delete",
      kind: "danger",
    }))
  )
    return;
  await change(() => api.deleteCheckpoint(state.session, name, { expected: expected() }), "Checkpoint deleted.");
}
