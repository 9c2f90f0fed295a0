// Texts and numbers about a plan. The server made the plan; the page only reads it.

import { filesText, turnsText, visible } from "./dom.js";

/** Returns the conflicts that are not resolved yet. */
export const unresolved = (plan) => plan.conflicts.filter((item) => !item.settled_by);

/** Returns the number of files that a plan changes. */
export const changing = (plan) => plan.files_reverted.length + (plan.preview ? unresolved(plan).length : 0);

/** Returns the question about a plan, for an undo in the words of S0-14. */
export function question(plan) {
  const files = changing(plan);
  const also = files ? `This will change ${filesText(files)}.` : "No file will change.";
  if (plan.move === "revert")
    return [
      `Revert only turn ${plan.of ?? ""}?`.replace(" ?", "?"),
      `Its changes are undone, and later turns stay. ${also}`,
    ];
  if (plan.move === "apply") return ["Apply this turn again?", also];
  if (plan.move === "restore") return ["Restore these files?", also];
  if (plan.turns_undone && plan.turns_redone) {
    return [
      `Switch to ${visible(plan.branch)}?`,
      `This will undo ${turnsText(plan.turns_undone)} and redo ${turnsText(plan.turns_redone)}, and change ${filesText(files)}.`,
    ];
  }
  if (plan.turns_undone)
    return [
      `Undo ${turnsText(plan.turns_undone)}?`,
      files ? `This will revert changes to ${filesText(files)}.` : "No file will change.",
    ];
  if (plan.turns_redone)
    return [
      `Redo ${turnsText(plan.turns_redone)}?`,
      files ? `This will apply changes to ${filesText(files)} again.` : "No file will change.",
    ];
  return ["Go there?", also];
}

/** Returns the request for the server. `turn` is only for people. */
export const asked = ({ turn, ...request }, at) => ({ ...request, expected: at });

export const isIdle = (plan) =>
  !plan.turns_undone &&
  !plan.turns_redone &&
  !plan.written.length &&
  !plan.removed.length &&
  !plan.skipped.length &&
  plan.from.commit === plan.to.commit &&
  !["revert", "apply", "restore"].includes(plan.move);
