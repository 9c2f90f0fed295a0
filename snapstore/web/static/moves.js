// The path of every move: a plan from the server, a confirmation, then the move. No rules live here.

import * as api from "./api.js";
import { openDialog, toast } from "./dialogs.js";
import { button, filesText, h, turnsText, visible } from "./dom.js";
import { refresh, refused } from "./loading.js";
import { MoveDialog } from "./movedialog.js";
import { asked, changing, isIdle } from "./plans.js";
import { dispatch, expected, shownName, standstill, state } from "./state.js";

/** Requests a preview of a move, asks the person, and executes the move. Returns its record. */
export async function propose(request) {
  if (proposing) return null; // pressed twice
  proposing = true;
  try {
    return await proposed(request);
  } finally {
    proposing = false;
  }
}

const SLOW = 1000; // milliseconds
let proposing = false;

async function proposed(request) {
  const reason = standstill();
  if (reason) {
    toast(reason, { kind: "bad", hint: "Let the agent finish first." });
    return null;
  }
  // The person confirms the plan made from this cursor. If the session moves meanwhile, the confirmation is stale.
  const at = expected();
  let plan;
  const slow = setTimeout(() => toast("The server is slow to answer. Nothing has been done yet."), SLOW);
  try {
    plan = await api.preview(shownName(), asked(request, at)).finally(() => clearTimeout(slow));
  } catch (error) {
    await refused(error);
    return null;
  }
  if (!plan.conflicts.length && isIdle(plan)) {
    toast("Nothing to do: everything is already in that state.");
    return null;
  }
  let dialog;
  const build = (close) => {
    dialog = new MoveDialog(request, at, plan, close, told);
    return dialog.parts();
  };
  const answer = openDialog(build, { kind: "ask move", stays: () => dialog.working });
  return (await answer) || null;
}

/** Shows the result of a move at once, with a short message and the way back. */
function told(done) {
  const cursor = done.to.commit;
  state.moved = true;
  const known = state.line.byCommit.has(cursor) && done.scope !== "files"; // a files-only move keeps the cursor
  if (known && done.branch !== state.tree.branch) dispatch({ type: "BRANCH", cursor, branch: done.branch });
  else if (known) dispatch({ type: done.turns_undone ? "UNDO" : "REDO", cursor });
  const parts = [];
  if (done.turns_undone) parts.push(`Undone ${turnsText(done.turns_undone)}`);
  if (done.turns_redone) parts.push(`${parts.length ? "redone" : "Redone"} ${turnsText(done.turns_redone)}`);
  const files = changing(done);
  const only = { files: ", files only", conversation: ", conversation only" }[done.scope] || "";
  const headline =
    (parts.length && parts.join(", ") + only) ||
    { revert: "Reverted", apply: "Applied", restore: "Restored" }[done.move] ||
    "Moved";
  const actions = done.turns_undone && done.prompt ? [["Copy prompt", () => copyPrompt(done.prompt)]] : [];
  const saved = done.conflicts.filter((item) => ["force", "merge", "markers"].includes(item.settled_by));
  const paths = saved.map((item) => item.path);
  if (done.safety && paths.length)
    actions.push(["Restore mine…", () => propose({ move: "restore", address: done.safety, paths })]);
  const hint = [
    done.merged.length ? `Merged with your changes: ${listed(done.merged)}.` : "",
    done.safety ? `What was on disk is saved as ${done.safety.slice(0, 12)}.` : "",
    done.pending_fork ? "The agent still remembers the undone turns." : "",
  ];
  toast(`${headline}. ${files ? `${filesText(files)} changed.` : "No file changed."}`, {
    kind: "good",
    hint: hint.filter(Boolean).join(" "),
    actions,
  });
  refresh();
}

const listed = (paths) => paths.slice(0, 3).map(visible).join(", ") + (paths.length > 3 ? ", …" : "");

/** Copies the undone prompt, so that a person can edit it (G-12). */
export async function copyPrompt(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Prompt copied.");
  } catch {
    openDialog((close) => [
      h(
        "div",
        { class: "dialog-body" },
        h("h2", { id: "dialog-title" }, "The prompt"),
        h("textarea", { readonly: true, rows: "8", "aria-label": "Prompt", value: text }),
      ),
      h(
        "footer",
        { class: "dialog-foot" },
        button("Close", () => close()),
      ),
    ]);
  }
}

/** Reports a change that is not a move, and refreshes the page. */
export function done(said) {
  toast(said, { kind: "good" });
  return refresh();
}

export async function change(work, said) {
  try {
    const answer = await work();
    await done(said);
    return answer;
  } catch (error) {
    await refused(error);
    return null;
  }
}
