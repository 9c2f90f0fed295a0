// The branches that part from a turn, one at a time; and the dialog that starts a new one.

import * as api from "./api.js";
import { openComparison } from "./compare.js";
import { complain, dialogHead, openDialog, toast } from "./dialogs.js";
import { button, fill, firstLine, h, svg, time, turnsText, visible } from "./dom.js";
import { details, refresh, select } from "./loading.js";
import { propose } from "./moves.js";
import { conversationRecord, expected, isCompacted, sessionRecord, standstill, state } from "./state.js";
import { pathName, turnBody } from "./turn.js";

const BATCH = 20; // turns that a dialog shows at a time

/** Only the turns after the fork, as a conversation; left and right go from branch to branch (S0-38..S0-42). */
export function openBranches(node, forks, first = 0) {
  const line = state.line;
  let at = first;
  return openDialog(
    (close, dialog) => {
      const body = h("div", { class: "branch-turns", tabindex: "0", role: "group", "aria-label": "Turns of the branch" });
      const about = h("div", { class: "branch-about", "aria-live": "polite" });
      const foot = h("footer", { class: "dialog-foot" });
      const place = h("span", { class: "muted place" });
      const go = (step) => {
        at = (at + step + forks.length) % forks.length;
        draw();
      };
      const arrows = h(
        "div",
        { class: "arrows", role: "group", "aria-label": "Branches from this turn" },
        button("Previous branch", () => go(-1), { icon: "left", only: true, reason: forks.length < 2 ? "There is only one branch here." : "" }),
        place,
        button("Next branch", () => go(1), { icon: "right", only: true, reason: forks.length < 2 ? "There is only one branch here." : "" }),
      );
      const draw = () => {
        const branch = forks[at];
        const nodes = line.own(branch);
        const turns = nodes.filter((one) => one.turn !== null);
        place.textContent = `${at + 1} of ${forks.length}`;
        fill(
          about,
          h("div", null, h("strong", null, h("bdi", null, visible(branch.label || branch.name))), branch.label !== branch.name && h("span", { class: "muted" }, ` ${visible(branch.name)}`), h("p", { class: "muted" }, turnsText(turns.length), " after the fork, last ", time(branch.ended_at))),
          graph(forks, at),
        );
        fill(body, null);
        body.scrollTop = 0;
        show(branch, nodes, 0);
        const reason = standstill();
        fill(
          foot,
          button("Compare with the current line", () => openComparison(state.tree.branch, branch.name), { kind: "quiet" }),
          button("Redo entire branch", () => redo(branch, null, close), { kind: "primary", reason }),
        );
      };
      const show = async (branch, nodes, from) => {
        const part = nodes.slice(from, from + BATCH);
        const waiting = h("p", { class: "muted" }, "Reading…");
        body.append(waiting);
        let known;
        try {
          known = await details(part.map((one) => one.commit));
        } catch (error) {
          waiting.remove();
          complain(error);
          return;
        }
        waiting.remove();
        if (forks[at] !== branch) return;
        part.forEach((one, number) => body.append(turnIn(branch, one, known[number], close)));
        if (from + BATCH < nodes.length) {
          const more = button(`Show more turns (${nodes.length - from - BATCH})`, () => {
            more.remove();
            show(branch, nodes, from + BATCH);
          }, { kind: "quiet" });
          body.append(more);
        }
      };
      dialog.addEventListener("keydown", (event) => {
        if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, .diff-body")) return;
        if (document.querySelectorAll("dialog[open]").length > 1) return;
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step || forks.length < 2) return;
        event.preventDefault();
        go(step);
      });
      draw();
      const name = node.turn === null ? "the start" : `turn ${node.turn}`;
      return [dialogHead(`Branches from ${name}`, close), h("div", { class: "branch-bar" }, arrows, about), body, foot];
    },
    { kind: "wide branch-dialog" },
  );
}

function turnIn(branch, node, detail, close) {
  if (node.turn === null) return h("p", { class: "row edits in-dialog" }, `${detail?.files?.length || 0} files changed between turns`);
  return h(
    "article",
    { class: "turn in-dialog", dataset: { turn: node.turn }, "aria-label": `Turn ${node.turn}` },
    h("header", { class: "turn-head" }, h("h3", null, `Turn ${node.turn}`), h("span", { class: "who" }, visible(node.agent)), time(node.ended_at), h("span", { class: "actions shown" }, button("Redo to here", () => redo(branch, node, close), { kind: "small", reason: standstill() }))),
    h("div", { class: "turn-body" }, turnBody(node, detail)),
  );
}

/** Confirmed like any move; the dialog of branches goes when it was carried out. */
async function redo(branch, node, close) {
  const whole = !node || node.commit === branch.commit;
  const done = await propose({ move: "switch", address: whole ? branch.name : `${branch.name}:${node.turn}` });
  if (done) close();
}

/** The current line and the branches that leave it here. */
function graph(forks, at) {
  const height = 18 + forks.length * 12;
  const lanes = forks.map((branch, number) => {
    const y = 16 + number * 12;
    const own = Math.min(branch.own_turns || 1, 8);
    const dots = [...Array(own)].map((_, dot) => svg("circle", { cx: 44 + dot * 11, cy: y, r: "3" }));
    return svg("g", { class: number === at ? "lane chosen" : "lane" }, svg("path", { d: `M18 6 C 26 6 26 ${y} 38 ${y} H ${40 + (own - 1) * 11}` }), dots);
  });
  const title = svg("title", null, `${forks.length} branches leave the current line here`);
  return svg("svg", { class: "mini", viewBox: `0 0 140 ${height}`, width: "140", height, role: "img" }, title, svg("path", { class: "now", d: "M4 6 H 134" }), svg("circle", { class: "point", cx: "18", cy: "6", r: "4" }), lanes);
}

/** S1-32: a new session of the agent that ends at this turn. The name is optional (S1-53). */
export async function rewindDialog(node, named = false) {
  const turn = node.turn ?? 0;
  const refusal = cannotFork();
  const at = expected();
  const [compacted, plan] = refusal ? ["", null] : await Promise.all([compactedAfter(node), planned(node, at)]);
  const answer = await openDialog(
    (close) => {
      const known = conversationRecord();
      const field = h("input", { type: "text", id: "branch-title", maxlength: "120", placeholder: `${known?.title || firstLine(sessionRecord()?.firstPrompt || state.session)} (Branch)`, autocomplete: "off" });
      const create = h("button", { type: "submit", class: "button primary", disabled: refusal !== "" || compacted !== "" }, "Create Branch");
      const anyway = h("input", { type: "checkbox", onchange: () => {
        create.disabled = !anyway.checked;
      } });
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
          h("p", { class: "lead" }, `This will create a new session branch starting from turn ${turn}. Your current session will remain unchanged.`),
          refusal && h("p", { class: "notice bad", role: "alert" }, refusal),
          compacted && [h("p", { class: "notice bad", role: "alert" }, compacted), h("label", { class: "choice" }, anyway, "Branch from the lines that were kept, all the same")],
          !refusal && h("label", { class: "field" }, h("span", null, "Name (optional)"), field),
          plan && filesGoAlong(plan),
        ),
        h("footer", { class: "dialog-foot" }, button("Cancel", () => close()), create),
      );
    },
    { kind: "ask" },
  );
  if (!answer) return;
  // Files that changed since are settled one by one first, as in any move.
  const settled = plan?.conflicts.length ? await propose({ move: "goto", address: node.commit }) : null;
  if (settled || !plan?.conflicts.length) await createFork(node, settled ? settled.to.commit : at, answer);
}

async function planned(node, at) {
  try {
    return await api.preview(state.session, { move: "goto", address: node.commit, expected: at });
  } catch {
    return null; // the fork itself will say why
  }
}

function filesGoAlong(plan) {
  const paths = [...plan.written, ...plan.removed];
  if (!paths.length && !plan.conflicts.length) return h("p", { class: "muted" }, "No file will change.");
  const names = paths.slice(0, 8).map((path) => h("li", null, pathName(path)));
  return h("section", null, h("h3", null, "Files go along ", h("span", { class: "count" }, paths.length + plan.conflicts.length)), h("ul", { class: "plain" }, names), paths.length > 8 && h("p", { class: "muted" }, `… and ${paths.length - 8} more`), (plan.notes || []).map((note) => h("p", { class: "notice" }, visible(note))));
}

async function createFork(node, at, { title, compacted }) {
  try {
    const { fork } = await api.fork(state.session, { expected: at, address: node.commit, ...(title ? { title } : {}), ...(compacted ? { compacted } : {}) });
    state.moved = true;
    await refresh(true);
    if (fork.id) await select(state.session, fork.id);
    const command = fork.command?.join(" ");
    toast(`Created a branch from turn ${fork.rewindFromTurn}.`, {
      kind: "good",
      hint: [...(fork.notices || []), command ? `Go on with: ${command}` : ""].filter(Boolean).join(" "),
      actions: command ? [["Copy command", () => navigator.clipboard?.writeText(command)]] : [],
    });
  } catch (error) {
    complain(error);
    if (error.stale) await refresh();
  }
}

/** Why the agent's conversation cannot be forked from here, or "" (G-21). */
export function cannotFork() {
  const record = sessionRecord();
  if (!record?.conversations?.length) return "This session belongs to no agent's conversation: there is nothing to fork. A branch starts by itself when a turn follows an undo.";
  const able = state.agents[conversationRecord()?.agent || record.agent];
  return able && able.fork === "none" ? able.notice || "This agent's conversations cannot be forked." : "";
}

/** A conversation cannot go back to before a compaction (S1-47). */
async function compactedAfter(node) {
  const line = state.line;
  const from = (line.index.get(node.commit) ?? 0) + 1;
  const later = line.nodes.slice(from, from + 200).filter((one) => one.kind === "turn");
  try {
    const known = await details(later.map((one) => one.commit));
    const met = known.find(isCompacted);
    return met ? `Turn ${node.turn ?? 0} lies before a compaction (at turn ${met.turn}): the agent no longer has the conversation up to it. Its files can still be restored.` : "";
  } catch {
    return ""; // the server will say it
  }
}
