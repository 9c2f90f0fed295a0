// Every move the same way: a plan from the server, a person's yes, then the move. Nothing is decided here.

import * as api from "./api.js";
import { conflictList } from "./conflicts.js";
import { complain, confirm, openDialog, toast } from "./dialogs.js";
import { diffView } from "./diff.js";
import { button, clip, fill, filesText, firstLine, h, turnsText, visible } from "./dom.js";
import { dispatch, expected, standstill, state } from "./state.js";
import { fold, pathName } from "./turn.js";
import { refresh } from "./loading.js";

const SHOWN = 200; // paths listed in a dialog

/** Asks the server what a move would do, a person whether to do it, and then has it done. Gives its record. */
export async function propose(request) {
  const reason = standstill();
  if (reason) {
    toast(reason, { kind: "bad", hint: "Let the agent finish first." });
    return null;
  }
  // What a person says yes to is the plan from here: should the session move meanwhile, the yes is stale.
  const at = expected();
  let plan;
  try {
    plan = await api.preview(state.session, asked(request, at));
  } catch (error) {
    await refused(error);
    return null;
  }
  if (!plan.conflicts.length && isIdle(plan)) {
    toast("Nothing to do: everything is as wanted already.");
    return null;
  }
  const answer = openDialog((close, dialog) => new MoveDialog(request, at, plan, close).parts(), { kind: "ask move" });
  if (plan.conflicts.length) toast(`${filesText(plan.conflicts.length)} changed since. Nothing was written.`, { kind: "bad", hint: "Choose for each file, or cancel." });
  const done = await answer;
  if (done) told(done);
  return done || null;
}

/** The request as the server reads it; `turn` is only for people. */
const asked = ({ turn, ...request }, at) => ({ ...request, expected: at });

const isIdle = (plan) =>
  !plan.turns_undone && !plan.turns_redone && !plan.written.length && !plan.removed.length && !plan.skipped.length && plan.from.commit === plan.to.commit && !["revert", "apply", "restore"].includes(plan.move);

/** What stands in the way is said, and the page is brought up to date where it was behind. */
async function refused(error) {
  if (error.stale) {
    toast("The session has moved meanwhile. Nothing was written.", { kind: "bad", hint: "The page is up to date now: look again, and repeat." });
    await refresh();
  } else {
    complain(error);
    if (error.status === 423) refresh();
  }
}

/** Conflicts that nothing settles yet. */
export const unsettled = (plan) => plan.conflicts.filter((item) => !item.settled_by);

const changing = (plan) => plan.files_reverted.length + (plan.preview ? unsettled(plan).length : 0);

/** The question, in the words of S0-14 for an undo. */
export function question(plan) {
  const files = changing(plan);
  const also = files ? `This will change ${filesText(files)}.` : "No file will change.";
  if (plan.move === "revert") return [`Revert only turn ${plan.of ?? ""}?`.replace(" ?", "?"), `Its changes are taken out, what came after stays. ${also}`];
  if (plan.move === "apply") return ["Apply this turn again?", also];
  if (plan.move === "restore") return ["Restore these files?", also];
  if (plan.turns_undone && plan.turns_redone) {
    return [`Switch to ${visible(plan.branch)}?`, `This will undo ${turnsText(plan.turns_undone)} and redo ${turnsText(plan.turns_redone)}, and change ${filesText(files)}.`];
  }
  if (plan.turns_undone) return [`Undo ${turnsText(plan.turns_undone)}?`, files ? `This will revert changes to ${filesText(files)}.` : "No file will change."];
  if (plan.turns_redone) return [`Redo ${turnsText(plan.turns_redone)}?`, files ? `This will apply changes to ${filesText(files)} again.` : "No file will change."];
  return ["Move there?", also];
}

class MoveDialog {
  constructor(request, at, plan, close) {
    this.session = state.session;
    this.request = { ...request };
    this.at = at;
    this.plan = plan;
    this.close = close;
    this.choices = new Map(); // path -> mine | theirs | merge | markers
    this.conflicts = plan.conflicts;
    this.body = h("div", { class: "dialog-body" });
    this.go = button("", () => this.carryOut(), { kind: "primary" });
    this.why = h("p", { class: "why", id: "why" });
  }

  parts() {
    this.draw();
    return [this.body, h("footer", { class: "dialog-foot" }, this.why, button("Cancel", () => this.close(), { autofocus: true }), this.go)];
  }

  draw() {
    const plan = this.plan;
    if (this.request.move === "revert") plan.of = this.request.turn;
    const [title, text] = question(plan);
    const first = plan.turns_undone ? this.firstUndone() : null;
    fill(
      this.body,
      h("h2", { id: "dialog-title" }, title),
      h("p", { class: "lead" }, text),
      first && h("p", { class: "muted" }, `First undone: turn ${first.turn}`, first.prompt && `, “${clip(firstLine(first.prompt), 90)}”`),
      this.conflicts.length > 0 && conflictList(this),
      this.files("Will be written", plan.written, "M"),
      this.files("Will be removed", plan.removed, "D"),
      this.files("Will be left as they are", plan.skipped, "S"),
      plan.kept.length > 0 && h("p", { class: "muted" }, `${filesText(plan.kept.length)} already as wanted.`),
      (plan.notes || []).map((note) => h("p", { class: "notice" }, visible(note))),
      this.scopes(),
    );
    const verb = plan.turns_undone && plan.turns_redone ? "Switch" : plan.turns_undone ? "Undo" : plan.turns_redone ? "Redo" : { revert: "Revert", apply: "Apply" }[plan.move] || "Restore";
    this.go.textContent = verb;
    const open = unsettled(plan).length;
    this.go.disabled = open > 0;
    this.why.textContent = open ? `${filesText(open)} still to be settled.` : "";
    if (open) this.go.setAttribute("aria-describedby", "why");
  }

  firstUndone() {
    const line = state.line.nodes.slice(0, state.line.at + 1).filter((node) => node.turn !== null);
    return line[line.length - this.plan.turns_undone];
  }

  files(title, paths, change) {
    if (!paths.length) return null;
    const rows = paths.slice(0, SHOWN).map((path) =>
      h("li", null, fold(
        `move:${path}`,
        { class: "file" },
        [h("span", { class: `change change-${change}`, "aria-hidden": "true" }, { M: "→", D: "×", S: "=" }[change]), pathName(path)],
        () => diffView(state.session, ...this.ends(), path),
      )),
    );
    return h("section", { class: "paths" }, h("h3", null, `${title} `, h("span", { class: "count" }, paths.length)), h("ul", { class: "files" }, rows), paths.length > SHOWN && h("p", { class: "muted" }, `… and ${(paths.length - SHOWN).toLocaleString("en")} more`));
  }

  /** Between which two places the files differ. A node that a move will make is not there yet. */
  ends() {
    const { move, address } = this.request;
    const node = state.line.byCommit.get(address);
    if (move === "revert" && node?.parent) return [node.commit, node.parent];
    if (move === "apply" && node?.parent) return [node.parent, node.commit];
    return [this.plan.from.commit, move === "restore" ? address : this.plan.to.commit];
  }

  /** Files and conversation go together unless a person says otherwise (C6). */
  scopes() {
    if (!["undo", "redo", "goto", "switch"].includes(this.request.move)) return null;
    const chosen = this.request.scope || "both";
    const option = (value, label) =>
      h("label", { class: "choice" }, h("input", { type: "radio", name: "scope", value, checked: chosen === value, onchange: () => this.again({ scope: value }) }), label);
    return h("fieldset", { class: "scopes" }, h("legend", null, "Move"), option("both", "Files and conversation"), option("files", "Files only"), option("conversation", "Conversation only"));
  }

  /** The request with what a person chose for each conflict. */
  settled() {
    const of = (way) => [...this.choices].filter(([, choice]) => choice === way).map(([path]) => path);
    const found = asked(this.request, this.at);
    if (this.choices.size && found.scope !== "conversation") {
      found.ours = of("mine");
      found.theirs = of("theirs");
      found.on_conflict = of("markers").length ? "markers" : of("merge").length ? "merge" : "refuse";
    }
    return found;
  }

  choose(path, way) {
    this.choices.set(path, way);
    return this.again({});
  }

  async again(change) {
    Object.assign(this.request, change);
    const focus = document.activeElement?.dataset?.focus;
    this.go.disabled = true; // until the answer to the last choice is here
    const asking = (this.asking = api.preview(this.session, this.settled()));
    try {
      const plan = await asking;
      if (asking !== this.asking) return; // another choice came meanwhile
      this.plan = plan;
      const known = new Map(this.conflicts.map((item) => [item.path, item]));
      for (const item of this.plan.conflicts) known.set(item.path, item);
      this.conflicts = this.request.scope === "conversation" ? [] : [...known.values()];
    } catch (error) {
      if (error.stale) this.close();
      await refused(error);
      return;
    }
    this.draw();
    if (focus) this.body.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
  }

  async carryOut() {
    if (this.go.disabled) return;
    this.go.disabled = true;
    this.go.classList.add("busy");
    try {
      this.close(await api.move(this.session, this.settled()));
    } catch (error) {
      this.go.classList.remove("busy");
      if (error.status === 409 && !error.stale) {
        toast(error.message, { kind: "bad", hint: error.hint || "Nothing was written. Choose for each file, or cancel." });
        await this.again({});
        return;
      }
      this.close();
      await refused(error);
    }
  }
}

/** After the move: shown at once, told in a word, with the way back. */
function told(done) {
  const cursor = done.to.commit;
  state.moved = true;
  const known = state.line.byCommit.has(cursor);
  if (known && done.branch !== state.tree.branch) dispatch({ type: "BRANCH", cursor, branch: done.branch });
  else if (known) dispatch({ type: done.turns_undone ? "UNDO" : "REDO", cursor });
  const parts = [];
  if (done.turns_undone) parts.push(`Undone ${turnsText(done.turns_undone)}`);
  if (done.turns_redone) parts.push(`${parts.length ? "redone" : "Redone"} ${turnsText(done.turns_redone)}`);
  const files = changing(done);
  const headline = parts.join(", ") || { revert: "Reverted", apply: "Applied", restore: "Restored" }[done.move] || "Moved";
  const actions = done.turns_undone && done.prompt ? [["Copy prompt", () => copyPrompt(done.prompt)]] : [];
  const hint = [
    done.safety ? `What was on disk is saved as ${done.safety.slice(0, 12)}.` : "",
    done.pending_fork ? "The agent still remembers the undone turns: its next prompt belongs into a fork." : "",
  ];
  toast(`${headline}. ${files ? `${filesText(files)} changed.` : "No file changed."}`, { kind: "good", hint: hint.filter(Boolean).join(" "), actions });
  refresh();
}

/** The undone prompt is handed back for editing (G-12). */
export async function copyPrompt(text) {
  try {
    await navigator.clipboard.writeText(text);
    toast("Prompt copied.");
  } catch {
    openDialog((close) => [h("div", { class: "dialog-body" }, h("h2", { id: "dialog-title" }, "The prompt"), h("textarea", { readonly: true, rows: "8", "aria-label": "Prompt", value: text })), h("footer", { class: "dialog-foot" }, button("Close", () => close()))]);
  }
}

/** Something other than a move: done, told, and shown. */
export async function change(work, said) {
  try {
    const done = await work();
    if (said) toast(said, { kind: "good" });
    await refresh();
    return done;
  } catch (error) {
    await refused(error);
    return null;
  }
}

export { confirm };
