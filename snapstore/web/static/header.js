// The header: the shown session, its origin, and the view tabs.

import { button, byId, clip, clipMiddle, fill, firstLine, h, icon, plural, turnsText, visible } from "./dom.js";
import { copyPrompt, propose } from "./moves.js";
import { rewindDialog } from "./rewind.js";
import { select } from "./loading.js";
import { conversationRecord, expected, nameOf, openTurn, sessionRecord, standstill, state } from "./state.js";

const VIEWS = [
  ["timeline", "Timeline"],
  ["tree", "Tree"],
  ["branches", "Branches"],
  ["checkpoints", "Checkpoints"],
  ["stats", "Statistics"],
];

export class Header {
  constructor(element, { show, view, find }) {
    this.element = element;
    this.show = show;
    this.view = view;
    this.top = h("div", { class: "top" });
    // Created once: a button that is replaced while it is pressed receives no click.
    this.tabs = h(
      "nav",
      { class: "tabs", "aria-label": "Views" },
      VIEWS.map(([view, label]) =>
        h(
          "button",
          { type: "button", class: "tab", "data-view": view, "data-focus": `tab-${view}`, onclick: () => this.view(view) },
          label,
        ),
      ),
    );
    this.state = h("div", { class: "states", "aria-live": "polite" });
    const field = h("input", {
      type: "search",
      id: "search",
      placeholder: "Search prompts, replies, paths",
      "aria-label": "Search prompts, replies and paths",
      autocomplete: "off",
      spellcheck: "false",
      oninput: () => find(field.value),
    });
    this.field = field;
    fill(
      element,
      this.top,
      this.state,
      h("div", { class: "bar" }, this.tabs, h("label", { class: "search" }, icon("search"), field)),
    );
  }

  draw() {
    const session = sessionRecord();
    const line = state.line;
    const shown = conversationRecord();
    const title =
      state.conversation && shown
        ? nameOf(shown)
        : firstLine(session?.firstPrompt) || state.session || "No session yet";
    document.title = `${clip(firstLine(title), 60)} · snapstore`;
    const focus = this.element.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
    const reason = standstill();
    const nothing = line && line.turn === 0 ? "Nothing to undo." : "";
    fill(
      this.top,
      button("Sessions", () => drawer(), { icon: "menu", only: true, kind: "drawer-button" }),
      h(
        "div",
        { class: "titles" },
        this.crumbs(session, shown),
        h(
          "h1",
          null,
          shown?.parentSessionId &&
            h("span", { class: "badge accent", title: "A branch of another session" }, icon("fork"), " branch"),
          h("span", { dir: "auto" }, visible(clip(firstLine(title), 140))),
        ),
        this.rewound(session, shown),
      ),
      line &&
        h(
          "div",
          { class: "top-actions" },
          this.counter(line),
          button("Undo last turn", () => propose({ move: "undo", count: 1 }), {
            reason: reason || nothing,
            kind: "small",
            "data-focus": "undo-last",
          }),
        ),
    );
    fill(this.state, this.states(line, reason));
    const counts = {
      branches: (state.tree?.branches || []).filter((one) => one.state !== "archived").length,
      checkpoints: (state.tree?.nodes || []).reduce((sum, node) => sum + node.checkpoints.length, 0),
    };
    for (const tab of this.tabs.children) {
      const view = tab.dataset.view;
      if (state.view === view) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
      tab.querySelector(".count")?.remove();
      if (counts[view] > (view === "branches" ? 1 : 0)) tab.append(h("span", { class: "count" }, counts[view]));
    }
    if (focus) this.element.querySelector(`[data-focus="${focus}"]`)?.focus();
  }

  /** The chain of forks: original → fork → fork of the fork (S1-44). */
  crumbs(session, shown) {
    const all = new Map((session?.conversations || []).map((one) => [one.sessionId, one]));
    const path = [];
    for (let one = shown; one && !path.includes(one); one = all.get(one.parentSessionId)) path.unshift(one);
    if (path.length < 2) return null;
    return h(
      "nav",
      { class: "crumbs", "aria-label": "Where this session comes from" },
      h(
        "ol",
        null,
        path.map((one, at) =>
          h(
            "li",
            null,
            at === path.length - 1
              ? h("span", { "aria-current": "page" }, clipMiddle(firstLine(nameOf(one)), 44))
              : h(
                  "button",
                  { type: "button", class: "link", onclick: () => select(state.session, one.sessionId) },
                  clipMiddle(firstLine(nameOf(one)), 44),
                ),
          ),
        ),
      ),
    );
  }

  rewound(session, shown) {
    if (!shown?.parentSessionId) return null;
    const parent = session.conversations.find((one) => one.sessionId === shown.parentSessionId);
    const name = clip(firstLine(parent ? nameOf(parent) : shown.parentSessionId), 60);
    return h(
      "p",
      { class: "rewound" },
      `Rewound from turn ${shown.rewindFromTurn ?? 0} of `,
      parent
        ? h("button", { type: "button", class: "link", onclick: () => select(state.session, parent.sessionId) }, name)
        : name,
    );
  }

  states(line, reason) {
    if (!line) return null;
    const said = [];
    if (reason) said.push(h("p", { class: "state live", role: "status" }, reason));
    if (state.tree.cursor !== expected())
      said.push(
        h("p", { class: "state" }, "You stand on another line. Undo, redo and Restore to here go to this one first."),
      );
    if (line.undone.length && !openTurn()) {
      const revert = state.status?.conversation?.revert;
      said.push(
        h(
          "p",
          { class: "state" },
          `You are at ${line.turn ? `turn ${line.turn}` : "the start"}; ${turnsText(line.undone.length)} undone after it. The next prompt starts a branch.`,
          revert?.prompt && button("Copy the undone prompt", () => copyPrompt(revert.prompt), { kind: "link" }),
        ),
      );
    }
    return said;
  }

  /** `Turn 5 of 12`, with a list of turns to go to and to rewind to (S1-05, S1-31). */
  counter(line) {
    const label = `Turn ${line.turn.toLocaleString("en")} of ${line.last.toLocaleString("en")}`;
    const element = h(
      "details",
      { class: "counter" },
      h("summary", { class: "button small", "data-focus": "counter" }, label, icon("down")),
    );
    const fold = () => {
      element.open = false;
    };
    element.addEventListener("toggle", () => {
      if (element.open && element.childElementCount === 1) element.append(this.turns(line, fold));
      if (element.open) element.querySelector("input")?.focus();
    });
    element.addEventListener("keydown", (event) => {
      if (event.key === "Escape") {
        fold();
        element.querySelector("summary").focus();
      }
    });
    element.addEventListener("focusout", (event) => {
      if (event.relatedTarget && !element.contains(event.relatedTarget)) fold();
    });
    return element;
  }

  turns(line, fold) {
    const turns = line.nodes.filter((node) => node.turn !== null);
    const list = h("ul");
    const draw = (around) => {
      const from = Math.max(0, Math.min(around - 6, turns.length - 12));
      fill(
        list,
        turns.slice(from, from + 12).map((node) =>
          h(
            "li",
            { class: line.isUndone(node.commit) ? "undone" : "" },
            h(
              "button",
              {
                type: "button",
                class: "goto",
                onclick: () => {
                  fold();
                  this.show(node);
                },
              },
              h("span", { class: "number" }, node.turn),
              h("span", { dir: "auto" }, clip(firstLine(node.prompt) || "(no prompt)", 60)),
            ),
            button(
              "Rewind to here",
              () => {
                fold();
                rewindDialog(node);
              },
              { kind: "small quiet", reason: standstill() },
            ),
          ),
        ),
      );
    };
    const field = h("input", {
      type: "number",
      min: "1",
      max: line.last,
      placeholder: `1 to ${line.last}`,
      "aria-label": "Turn number",
      oninput: () => {
        const at = turns.findIndex((node) => node.turn === Number(field.value));
        if (at >= 0) draw(at);
      },
    });
    draw(turns.findIndex((node) => node.turn === line.turn));
    return h(
      "div",
      { class: "turn-list" },
      h("label", { class: "field" }, h("span", null, "Go to turn"), field),
      list,
      h("p", { class: "muted" }, plural(turns.length, "turn"), " on this line"),
    );
  }
}

function drawer() {
  document.body.classList.add("drawer");
  byId("veil").hidden = false;
  byId("sessions").querySelector("button")?.focus();
}
