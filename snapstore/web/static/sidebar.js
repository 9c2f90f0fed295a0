// The sessions of this folder, each with its agent sessions below it as a tree of forks.

import { bytes, byId, clip, clipMiddle, fill, firstLine, h, icon, owner, plural, time, turnsText, visible } from "./dom.js";
import { openBranches } from "./branching.js";
import { select } from "./loading.js";
import { nameOf, state } from "./state.js";

const closed = new Set(); // groups that a person folded

export function drawSidebar() {
  byId("root").textContent = visible(state.root);
  byId("root").title = visible(state.root);
  const seen = state.sessions.filter(
    (one) => one.turns > 0 || one.active || one.session === state.session || one.conversations.length,
  );
  const focus = document.activeElement?.dataset?.focus;
  const nav = byId("sessions");
  fill(nav, h("ul", { class: "sessions" }, seen.map(group)));
  if (focus) nav.querySelector(`[data-focus="${CSS.escape(focus)}"]`)?.focus();
  const size = state.status?.size_bytes;
  fill(
    byId("foot"),
    size !== undefined && h("span", null, `Store ${bytes(size)}`),
    state.status?.hook_errors?.length > 0 &&
      h("span", { class: "bad" }, plural(state.status.hook_errors.length, "hook error")),
  );
}

function group(session) {
  const head = headOf(session);
  const forks = session.conversations.filter((one) => one !== head);
  const mine = session.session === state.session;
  const shown = mine && (state.conversation || session.conversations.find((one) => one.current)?.sessionId || null);
  const open = !closed.has(session.session);
  const branches = mine && !forks.length && state.line ? [...state.line.forks] : [];
  const number = forks.length || branches.reduce((sum, [, found]) => sum + found.length, 0);
  const title = clip(firstLine((head?.parentSessionId && nameOf(head)) || session.firstPrompt), 80) || session.session;
  const turns = head ? head.turns : session.turns;
  return h(
    "li",
    { class: "session-group" },
    h(
      "button",
      {
        type: "button",
        class: "session",
        "aria-current": mine && (!shown || shown === head?.sessionId) ? "true" : null,
        dataset: { focus: `s:${session.session}`, session: session.session },
        onclick: () => chosen(session.session, head && !head.current ? head.sessionId : null),
      },
      h("span", { class: "session-title", dir: "auto" }, visible(title)),
      h(
        "span",
        { class: "session-about" },
        session.agent && h("span", { class: "agent" }, visible(session.agent)),
        owner(session),
        h("span", null, turnsText(mine && state.line && (!shown || shown === head?.sessionId) ? state.line.turn : turns)),
        time(mine && state.line ? state.line.nodes.at(-1).ended_at : session.modified),
      ),
    ),
    number > 0 &&
      h(
        "button",
        {
          type: "button",
          class: "unfold",
          "aria-expanded": String(open),
          dataset: { focus: `u:${session.session}` },
          onclick: () => {
            if (open) closed.add(session.session);
            else closed.delete(session.session);
            drawSidebar();
          },
        },
        icon("down"),
        plural(number, "branch", "branches"),
      ),
    open &&
      forks.length > 0 &&
      h(
        "ul",
        { class: "forks" },
        tops(session).map((one) => fork(session, one, new Set())),
      ),
    open &&
      branches.length > 0 &&
      h(
        "ul",
        { class: "forks" },
        branches.flatMap(([commit, found]) =>
          found.map((branch, at) => lineLeft(state.line.byCommit.get(commit), found, at)),
        ),
      ),
  );
}

/** Draws a branch that has no fork of the agent's conversation. */
function lineLeft(node, found, at) {
  const branch = found[at];
  return h(
    "li",
    null,
    h(
      "button",
      {
        type: "button",
        class: "session fork",
        dataset: { focus: `b:${branch.name}`, branch: branch.name },
        onclick: () => openBranches(node, found, at),
      },
      h(
        "span",
        { class: "session-title", dir: "auto" },
        h("span", { class: "fork-sign", "aria-hidden": "true" }, icon("fork"), " "),
        clip(firstLine(branch.prompt), 60) || visible(branch.name),
      ),
      h("span", { class: "session-about" }, h("span", null, visible(branch.label)), time(branch.ended_at)),
    ),
  );
}

/** Returns the agent session that a session's own row stands for: the original, or the one that was promoted. */
function headOf(session) {
  const ids = new Set(session.conversations.map((one) => one.sessionId));
  return session.conversations.find((one) => !ids.has(one.listedUnder)) || session.conversations[0] || null;
}

/** Returns the agent sessions that are listed directly below a session's row. */
function tops(session) {
  const head = headOf(session);
  const ids = new Set(session.conversations.map((one) => one.sessionId));
  return session.conversations.filter(
    (one) => one !== head && (one.listedUnder === head.sessionId || !ids.has(one.listedUnder)),
  );
}

function fork(session, one, above) {
  const below = above.has(one.sessionId)
    ? []
    : session.conversations.filter((other) => other.listedUnder === one.sessionId);
  const mine = session.session === state.session;
  const shown = mine && (state.conversation ? state.conversation === one.sessionId : one.current);
  const known = new Set([...above, one.sessionId]);
  return h(
    "li",
    null,
    h(
      "button",
      {
        type: "button",
        class: "session fork",
        "aria-current": shown ? "true" : null,
        dataset: { focus: `f:${one.sessionId}`, conversation: one.sessionId },
        onclick: () => chosen(session.session, one.sessionId),
      },
      h(
        "span",
        { class: "session-title", dir: "auto" },
        h("span", { class: "fork-sign", "aria-hidden": "true" }, icon("fork"), " "),
        clipMiddle(firstLine(nameOf(one)), 34),
      ),
      h(
        "span",
        { class: "session-about" },
        h("span", null, one.parentSessionId ? `Branch from turn ${one.rewindFromTurn ?? 0}` : turnsText(one.turns)),
        one.archived && h("span", { class: "agent" }, "archived"),
        one.current && h("span", { class: "agent" }, "current"),
        time(one.modified),
      ),
    ),
    below.length > 0 &&
      h(
        "ul",
        { class: "forks" },
        below.map((other) => fork(session, other, known)),
      ),
  );
}

function chosen(session, conversation) {
  document.body.classList.remove("drawer");
  byId("veil").hidden = true;
  select(session, conversation);
}
