// The dialog that starts a new agent session at an earlier turn (S1-32), and the reasons why this may be impossible.

import * as api from "./api.js";
import { complain, openDialog, toast } from "./dialogs.js";
import { button, firstLine, h, visible } from "./dom.js";
import { refresh, select } from "./loading.js";
import { propose } from "./moves.js";
import { conversationRecord, expected, sessionRecord, shownName, state } from "./state.js";
import { pathName } from "./turn.js";

/** Starts a new agent session that ends at this turn (S1-32). The name is optional (S1-53). */
export async function rewindDialog(node, named = false) {
  const turn = node.turn ?? 0;
  const refusal = cannotFork();
  const at = expected();
  const [compacted, plan] = refusal ? ["", null] : await Promise.all([compactedAfter(node), planned(node, at)]);
  const answer = await openDialog(
    (close) => {
      const known = conversationRecord();
      const field = h("input", {
        type: "text",
        id: "branch-title",
        maxlength: "120",
        placeholder: `${known?.title || firstLine(sessionRecord()?.firstPrompt || state.session)} (Branch)`,
        autocomplete: "off",
      });
      const create = h(
        "button",
        { type: "submit", class: "button primary", disabled: refusal !== "" || compacted !== "" },
        "Create Branch",
      );
      const anyway = h("input", {
        type: "checkbox",
        onchange: () => {
          create.disabled = !anyway.checked;
        },
      });
      if (named) queueMicrotask(() => field.focus());
      return h(
        "form",
        {
          class: "dialog-form",
          onsubmit: (event) => {
            event.preventDefault();
            if (!create.disabled) close({ title: field.value.trim() || null, compacted: anyway.checked });
          },
        },
        h(
          "div",
          { class: "dialog-body" },
          h("h2", { id: "dialog-title" }, `Rewind session to turn ${turn}?`),
          !refusal &&
            h(
              "p",
              { class: "lead" },
              `This will create a new session branch starting from turn ${turn}. Your current session will remain unchanged.`,
            ),
          refusal && h("p", { class: "notice bad", role: "alert" }, refusal),
          compacted && [
            h("p", { class: "notice bad", role: "alert" }, compacted),
            h("label", { class: "choice" }, anyway, "Branch anyway, from the recorded lines"),
          ],
          !refusal && h("label", { class: "field" }, h("span", null, "Name (optional)"), field),
          plan && filesGoAlong(plan),
        ),
        h(
          "footer",
          { class: "dialog-foot" },
          button("Cancel", () => close()),
          create,
        ),
      );
    },
    { kind: "ask" },
  );
  if (!answer) return;
  // Conflicts are resolved first, file by file, as in any move.
  const moved = plan?.conflicts.length ? await propose({ move: "goto", address: node.commit }) : null;
  if (moved || !plan?.conflicts.length) await createFork(node, moved ? moved.to.commit : at, answer);
}

async function planned(node, at) {
  try {
    return await api.preview(shownName(), { move: "goto", address: node.commit, expected: at });
  } catch {
    return null; // the fork itself will report why
  }
}

function filesGoAlong(plan) {
  const paths = [...new Set([...plan.written, ...plan.removed, ...plan.conflicts.map((item) => item.path)])];
  if (!paths.length) return h("p", { class: "muted" }, "No file will change.");
  const names = paths.slice(0, 8).map((path) => h("li", null, pathName(path)));
  return h(
    "section",
    null,
    h("h3", null, "Files that change ", h("span", { class: "count" }, paths.length)),
    h("ul", { class: "plain" }, names),
    paths.length > 8 && h("p", { class: "muted" }, `… and ${paths.length - 8} more`),
    (plan.notes || []).map((note) => h("p", { class: "notice" }, visible(note))),
  );
}

async function createFork(node, at, { title, compacted }) {
  try {
    const { fork } = await api.fork(shownName(), {
      expected: at,
      address: node.commit,
      ...(title ? { title } : {}),
      ...(compacted ? { compacted } : {}),
    });
    state.moved = true;
    await refresh(true);
    if (fork.id) await select(state.session, fork.id);
    const command = fork.command?.join(" ");
    toast(`Created a branch from turn ${fork.rewindFromTurn}.`, {
      kind: "good",
      hint: [...(fork.notices || []), command ? `Continue with: ${command}` : ""].filter(Boolean).join(" "),
      actions: command ? [["Copy command", () => navigator.clipboard?.writeText(command)]] : [],
    });
  } catch (error) {
    complain(error);
    if (error.stale) await refresh();
  }
}

/** Returns why the agent's conversation cannot be forked from here, or "" (G-21). */
export function cannotFork() {
  const record = sessionRecord();
  if (!record?.conversations?.length)
    return "This session has no agent's conversation, so there is nothing to fork. A turn after an undo starts a branch automatically.";
  const able = state.agents[conversationRecord()?.agent || record.agent];
  return able && able.fork === "none" ? able.notice || "This agent's conversations cannot be forked." : "";
}

/** Returns a warning if the node is before a compaction, to where a conversation cannot return (S1-47). */
async function compactedAfter(node) {
  try {
    const { turn } = await api.readCompaction(state.session, node.commit);
    return turn === null
      ? ""
      : `Turn ${node.turn ?? 0} is before a compaction (at turn ${turn}): the agent no longer has the conversation up to it. Its files can still be restored.`;
  } catch {
    return ""; // the server will report it
  }
}
