// The question before every move: what will be written and removed, the conflicts, and the confirmation (S0-43, C13).

import * as api from "./api.js";
import { conflictList } from "./conflicts.js";
import { toast } from "./dialogs.js";
import { diffView } from "./diff.js";
import { button, clip, fill, filesText, firstLine, h, visible } from "./dom.js";
import { refused } from "./loading.js";
import { asked, question, unresolved } from "./plans.js";
import { shownName, state } from "./state.js";
import { fold, pathName } from "./turn.js";

const SHOWN = 200; // paths listed in a dialog

export class MoveDialog {
  constructor(request, at, plan, close, told) {
    this.session = shownName();
    this.request = { ...request };
    this.at = at;
    this.plan = plan;
    this.close = close;
    this.told = told;
    this.choices = new Map(); // path -> mine | theirs | merge | markers
    this.seen = new Map(); // path -> the state of the file when the choice was made
    this.reasons = new Map(); // path -> why the file cannot be merged, once that is known
    this.conflicts = plan.conflicts;
    this.noteReasons();
    this.body = h("div", { class: "dialog-body" });
    this.go = button("", () => this.carryOut(), { kind: "primary" });
    this.cancel = button("Cancel", () => this.close(), { autofocus: true });
    this.why = h("p", { class: "why", id: "why" });
  }

  parts() {
    this.draw();
    return [
      this.body,
      h(
        "footer",
        { class: "dialog-foot" },
        this.why,
        this.cancel,
        this.go,
      ),
    ];
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
      first &&
        h(
          "p",
          { class: "muted" },
          `First undone: turn ${first.turn}`,
          first.prompt && `, “${clip(firstLine(first.prompt), 90)}”`,
        ),
      this.conflicts.length > 0 && conflictList(this),
      this.files("Will be written", plan.written, "M"),
      this.files("Will be removed", plan.removed, "D"),
      this.files("Will be kept as they are", plan.skipped, "S", false),
      plan.kept.length > 0 && h("p", { class: "muted" }, `${filesText(plan.kept.length)} already in that state.`),
      (plan.notes || []).map((note) => h("p", { class: "notice" }, visible(note))),
      this.scopes(),
    );
    const verb =
      plan.turns_undone && plan.turns_redone
        ? "Switch"
        : plan.turns_undone
          ? "Undo"
          : plan.turns_redone
            ? "Redo"
            : { revert: "Revert", apply: "Apply" }[plan.move] || "Restore";
    this.go.textContent = verb;
    const open = unresolved(plan).length;
    this.go.disabled = open > 0;
    this.why.textContent = open ? `${filesText(open)} still unresolved.` : "";
    if (open) this.go.setAttribute("aria-describedby", "why");
  }

  firstUndone() {
    const line = state.line.nodes.slice(0, state.line.at + 1).filter((node) => node.turn !== null);
    return line[line.length - this.plan.turns_undone];
  }

  files(title, paths, change, changes = true) {
    if (!paths.length) return null;
    const name = (path) => [
      h("span", { class: `change change-${change}`, "aria-hidden": "true" }, { M: "→", D: "×", S: "=" }[change]),
      pathName(path),
    ];
    // From the disk to the result of the move: with choices made, this is not a diff of two nodes.
    const shown = (path) => diffView(path, api.previewDiff(this.session, { ...this.withChoices(), path }));
    const rows = paths
      .slice(0, SHOWN)
      .map((path) =>
        h(
          "li",
          null,
          changes
            ? fold(`move:${path}`, { class: "file" }, name(path), () => shown(path))
            : h("div", { class: "file alone" }, name(path)),
        ),
      );
    return h(
      "section",
      { class: "paths" },
      h("h3", null, `${title} `, h("span", { class: "count" }, paths.length)),
      h("ul", { class: "files" }, rows),
      paths.length > SHOWN && h("p", { class: "muted" }, `… and ${(paths.length - SHOWN).toLocaleString("en")} more`),
    );
  }

  /** Files and conversation move together unless a person chooses otherwise (C6). */
  scopes() {
    if (!["undo", "redo", "goto", "switch"].includes(this.request.move)) return null;
    const chosen = this.request.scope || "both";
    const option = (value, label) =>
      h(
        "label",
        { class: "choice" },
        h("input", {
          type: "radio",
          name: "scope",
          value,
          checked: chosen === value,
          onchange: () => this.again({ scope: value }),
        }),
        label,
      );
    return h(
      "fieldset",
      { class: "scopes" },
      h("legend", null, "Move"),
      option("both", "Files and conversation"),
      option("files", "Files only"),
      option("conversation", "Conversation only"),
    );
  }

  /** Returns the request with the person's choice for each conflict. */
  withChoices() {
    const of = (way) => [...this.choices].filter(([, choice]) => choice === way).map(([path]) => path);
    const found = asked(this.request, this.at);
    if (this.choices.size && found.scope !== "conversation") {
      found.ours = of("mine");
      found.theirs = of("theirs");
      found.merge = of("merge");
      found.markers = of("markers");
      found.seen = Object.fromEntries(this.seen);
    }
    return found;
  }

  choose(path, way) {
    return this.chooseAll(way, [this.conflicts.find((item) => item.path === path)]);
  }

  chooseAll(way, items = this.conflicts) {
    for (const { path, found } of items) {
      this.choices.set(path, way);
      this.seen.set(path, found);
    }
    return this.again({});
  }

  async again(change) {
    Object.assign(this.request, change);
    const focus = document.activeElement?.dataset?.focus;
    this.go.disabled = true; // until the response to the last choice arrives
    const asking = (this.asking = api.preview(this.session, this.withChoices()));
    try {
      const plan = await asking;
      if (asking !== this.asking) return; // another choice was made meanwhile
      this.plan = plan;
      const known = new Map(this.conflicts.map((item) => [item.path, item]));
      for (const item of this.plan.conflicts) known.set(item.path, item);
      this.forgetOutdated();
      this.noteReasons();
      this.conflicts = this.request.scope === "conversation" ? [] : [...known.values()];
    } catch (error) {
      if (error.stale) this.close();
      await refused(error);
      return;
    }
    this.draw();
    if (focus) this.body.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
  }

  /** Drops choices for files that have changed since the choice was made, so that the person is asked again. */
  forgetOutdated() {
    const other = this.plan.conflicts.filter((item) => this.seen.has(item.path) && this.seen.get(item.path) !== item.found);
    for (const { path } of other) {
      this.choices.delete(path);
      this.seen.delete(path);
      this.reasons.delete(path);
    }
    if (other.length)
      toast(`${other.map((item) => visible(item.path)).join(", ")} changed again meanwhile. Nothing was written.`, {
        kind: "bad",
        hint: "Choose again.",
      });
  }

  noteReasons() {
    for (const { path, settled_by: way, why } of this.plan.conflicts) {
      if (way === "merge") this.reasons.delete(path);
      else if (why) this.reasons.set(path, why);
    }
  }

  /** After the confirmation a move can only be reversed by another move, so Cancel is disabled while it runs. */
  underWay(is) {
    this.working = is;
    this.cancel.disabled = is;
    this.go.disabled = is;
    this.go.classList.toggle("busy", is);
    this.why.textContent = is ? "In progress. Another program may be using the store." : "";
  }

  async carryOut() {
    if (this.go.disabled) return;
    this.underWay(true);
    try {
      const { to, branch } = this.plan;
      const answer = await api.move(this.session, { ...this.withChoices(), to: to.commit, branch });
      const done = { ...answer, scope: this.request.scope || "both" };
      this.close(done);
      this.told(done);
    } catch (error) {
      this.underWay(false);
      if (error.status === 409 && !error.stale) {
        toast(error.message, {
          kind: "bad",
          hint: error.hint || "Nothing was written. Choose for each file, or cancel.",
        });
        await this.again({});
        return;
      }
      this.close();
      await refused(error);
    }
  }
}
