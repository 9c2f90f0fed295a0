// The current line as a conversation: turns, the user's own edits between them, and the cursor.

import { openBranches } from "./branching.js";
import { button, clip, coded, filesText, firstLine, forkSign, h, time, visible } from "./dom.js";
import { openMenu } from "./dialogs.js";
import { forget, want } from "./loading.js";
import { copyPrompt, propose } from "./moves.js";
import { askCheckpoint } from "./checkpoints.js";
import { cannotFork, rewindDialog } from "./rewind.js";
import { isCurrentLine, openTurn, shownName, standstill, state } from "./state.js";
import { asRead, fileList, fold, turnBody } from "./turn.js";
import { VirtualList } from "./virtual.js";

const KINDS = { revert: "revert", apply: "applied", restore: "restored" };

const NONE = [];

/** Returns a key of everything that a row shows. A row with another key gets a new element. */
function signOf({ key, node, open, undone, here, forks }) {
  if (open) return `open${open.started_at}${open.prompt}`;
  if (!node) return `${key}${undone}`;
  return [
    undone,
    here,
    state.details.has(key),
    state.grown.get(key) || 0,
    standstill() !== "",
    cannotFork() === "",
    node.checkpoints.join("\n"),
    forks.map((branch) => branch.name).join("\n"),
  ].join("|");
}

export class Timeline {
  constructor(element) {
    this.list = new VirtualList(element, {
      render: (row) => this.row(row),
      sign: signOf,
      onSeen: (rows) => this.seen(rows),
    });
    this.shown = null; // the session whose scroll position was already set
    element.addEventListener("contextmenu", (event) => {
      const row = event.target.closest("[data-commit]");
      if (!row || event.target.closest("a, input, .diff-body")) return;
      event.preventDefault();
      this.menu(row.dataset.commit, event.clientX, event.clientY);
    });
  }

  draw() {
    const line = state.line;
    if (!line) {
      this.shown = null;
      this.list.set([]);
      return;
    }
    const rows = [];
    for (let at = 0; at < line.nodes.length; at += 1) {
      const node = line.nodes[at];
      rows.push({
        key: node.commit,
        node,
        undone: at > line.at,
        forks: line.forks.get(node.commit) || NONE,
        here: at === line.at,
        guess: node.turn === null ? 52 : 168,
      });
      if (at === line.at && line.undone.length) rows.push({ key: "here", undone: line.undone.length, guess: 44 });
    }
    const open = isCurrentLine() ? openTurn() : null; // another agent session's turn is not on this line
    if (!open && line.last === 0) rows.push({ key: "empty", guess: 120 });
    if (open) rows.push({ key: "open", open, guess: 120 });
    const follow = this.shown === shownName() && this.list.atEnd;
    this.list.set(rows);
    queueMicrotask(() => {
      state.moved = false;
    });
    if (this.shown !== shownName()) {
      this.shown = shownName();
      this.list.show(open ? "open" : line.nodes[line.at].commit, "end");
    } else if (state.moved) {
      if (line.undone.length) this.list.show("here", "center");
      else this.list.show(line.nodes[line.at].commit, "end");
    } else if (follow && !line.undone.length) {
      this.list.show(rows[rows.length - 1].key, "end");
    }
  }

  /** Details arrived: the rows are the same, but some of them show more. */
  drawDetails() {
    this.list.draw();
  }

  show(commit, align) {
    this.list.show(commit, align);
    const element = this.list.mounted.get(commit);
    element?.classList.add("found");
    setTimeout(() => element?.classList.remove("found"), 1600);
  }

  seen(rows) {
    forget();
    want(rows.map((row) => row.node?.commit).filter(Boolean));
  }

  row(row) {
    if (row.open) return openRow(row.open);
    if (row.key === "empty")
      return h(
        "div",
        { class: "row empty", role: "article" },
        h("p", null, "No turns yet."),
        h(
          "p",
          { class: "muted" },
          "They appear here as soon as an agent works. ",
          coded("`snapstore connect` lets your agent report them."),
        ),
      );
    if (!row.node)
      return h(
        "div",
        { class: "row divider", role: "article" },
        h("span", null, `You are here. Future turns (${row.undone}) follow.`),
      );
    if (row.node.kind === "baseline") return this.start(row);
    if (row.node.turn === null) return this.edits(row);
    return this.turn(row);
  }

  turn({ node, undone, forks, here }) {
    const detail = state.details.get(node.commit);
    const name = `Turn ${node.turn}`;
    return h(
      "article",
      {
        class: `row turn ${undone ? "undone" : ""} ${here ? "here" : ""} kind-${node.kind}`,
        dataset: { commit: node.commit, turn: node.turn },
        "aria-label": `${name}${undone ? ", undone" : ""}: ${clip(firstLine(node.prompt), 80)}`,
        "aria-busy": String(!detail),
        tabindex: "-1",
      },
      h(
        "header",
        { class: "turn-head" },
        h("h3", { "aria-level": "2" }, forks.length ? forkButton(node, forks, name) : name),
        here && h("span", { class: "badge accent" }, "you are here"),
        undone && h("span", { class: "badge dashed" }, "undone"),
        KINDS[node.kind] && h("span", { class: "badge" }, KINDS[node.kind]),
        detail?.status === "interrupted" && h("span", { class: "badge bad" }, "interrupted"),
        node.checkpoints.map((label) => h("span", { class: "badge pin" }, "◆ ", h("bdi", null, visible(label)))),
        h("span", { class: "who" }, visible(node.agent)),
        time(node.ended_at),
        this.actions(node),
      ),
      h("div", { class: "turn-body" }, turnBody(node, detail)),
    );
  }

  actions(node) {
    const reason = standstill();
    const label = "Restore to here";
    return h(
      "span",
      { class: "actions" },
      button(label, () => restoreTo(node), {
        icon: "restore",
        only: true,
        reason,
        "data-focus": "restore",
        "aria-label": label,
        title: reason || `${label} (turn ${node.turn ?? 0})`,
      }),
      node.turn !== null &&
        !cannotFork() &&
        button("Rewind to here", () => rewindDialog(node), {
          icon: "fork",
          only: true,
          reason,
          "data-focus": "rewind",
        }),
      button(
        `Actions for ${node.turn === null ? "the start" : `turn ${node.turn}`}`,
        (event) => {
          const box = event.currentTarget.getBoundingClientRect();
          this.menu(node.commit, box.right - 200, box.bottom + 4);
        },
        { icon: "more", only: true, "aria-haspopup": "menu", "data-focus": "more" },
      ),
    );
  }

  start({ node, forks, undone, here }) {
    return h(
      "article",
      {
        class: `row start ${here ? "here" : ""} ${undone ? "undone" : ""}`,
        dataset: { commit: node.commit },
        "aria-label": "Before the first turn",
        tabindex: "-1",
      },
      h("span", { class: "dot", "aria-hidden": "true" }),
      h(
        "span",
        { class: "quiet-text" },
        forks.length ? forkButton(node, forks, "Start") : "Start",
        ", before the first turn",
      ),
      here && h("span", { class: "badge accent" }, "you are here"),
      node.checkpoints.map((label) => h("span", { class: "badge pin" }, "◆ ", h("bdi", null, visible(label)))),
      time(node.ended_at),
      this.actions(node),
    );
  }

  edits({ node, undone, here }) {
    const detail = state.details.get(node.commit);
    const files = asRead(detail?.files || []);
    const named = files
      .slice(0, 2)
      .map((file) => visible(file.path))
      .join(", ");
    const text = detail
      ? `${filesText(files.length)} changed between turns: ${named}${files.length > 2 ? ", …" : ""}`
      : "Changed between turns";
    return h(
      "article",
      {
        class: `row edits ${undone ? "undone" : ""} ${here ? "here" : ""}`,
        dataset: { commit: node.commit },
        "aria-label": "Edits between turns",
        tabindex: "-1",
      },
      h("span", { class: "dot", "aria-hidden": "true" }),
      detail
        ? fold(
            `${node.commit}:edits`,
            { class: "fold quiet-text" },
            text,
            () => fileList(node, detail) || h("p", { class: "muted" }, "No file."),
          )
        : h("span", { class: "quiet-text" }, text),
      here && h("span", { class: "badge accent" }, "you are here"),
      time(node.ended_at),
    );
  }

  menu(commit, x, y) {
    const line = state.line;
    const node = line?.byCommit.get(commit);
    if (!node) return;
    const reason = standstill();
    const undone = line.isUndone(commit);
    const numbered = node.turn !== null;
    const isTurn = reason || (numbered ? "" : "This is not a turn.");
    const done = isTurn || (undone ? "It is already undone." : "");
    const forks = line.forks.get(commit) || [];
    openMenu(
      x,
      y,
      [
        ["Restore to this point", () => restoreTo(node), reason],
        ["Undo this turn", () => undoTurn(node), done],
        ["Revert only this turn", () => propose({ move: "revert", address: node.commit, turn: node.turn }), done],
        null,
        ["Rewind to this turn…", () => rewindDialog(node), reason],
        ["Branch from here…", () => rewindDialog(node, true), reason],
        forks.length && [
          `Show ${forks.length === 1 ? "the branch" : `${forks.length} branches`} from here`,
          () => openBranches(node, forks),
        ],
        null,
        ["Checkpoint…", () => askCheckpoint(node)],
        [
          "Copy prompt",
          async () => copyPrompt(state.details.get(commit)?.prompt || node.prompt),
          numbered ? "" : "There is no prompt.",
        ],
      ].filter((item) => item !== 0 && item !== undefined && item !== false),
      numbered ? `Turn ${node.turn}` : "Start",
    );
  }
}

function forkButton(node, forks, name) {
  const about = `${name}: ${forks.length === 1 ? "1 branch diverges" : `${forks.length} branches diverge`} here`;
  return h(
    "button",
    {
      type: "button",
      class: "fork-mark",
      title: about,
      "data-focus": "fork",
      onclick: () => openBranches(node, forks),
    },
    `${name} `,
    h("span", { class: "fork-sign" }, forkSign(), ` ${forks.length}`),
    h("span", { class: "for-readers" }, ` ${about}`),
  );
}

function openRow(turn) {
  return h(
    "article",
    { class: "row turn open", "aria-label": "The open turn" },
    h(
      "header",
      { class: "turn-head" },
      h("h3", { "aria-level": "2" }, turn.turn ? `Turn ${turn.turn}` : "Open turn"),
      h("span", { class: "badge live" }, "open"),
      h("span", { class: "who" }, visible(turn.agent)),
      time(turn.started_at),
    ),
    h(
      "div",
      { class: "turn-body" },
      h("div", { class: "prompt", dir: "auto" }, h("p", null, visible(turn.prompt) || "(no prompt)")),
    ),
  );
}

/** Keeps the turn: later turns are undone, or turns up to it are redone (C8). */
export const restoreTo = (node) => propose({ move: "goto", address: node.commit });

/** Undoes the turn itself as well. */
function undoTurn(node) {
  const line = state.line;
  const count = line.nodes.slice(line.index.get(node.commit), line.at + 1).filter((one) => one.turn !== null).length;
  return propose({ move: "undo", count });
}
