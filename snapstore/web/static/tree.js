// The whole session as a drawing: every branch, every turn. Only the visible part is in the document.

import { openBranches } from "./branching.js";
import { openComparison } from "./compare.js";
import { button, clip, fill, filesText, firstLine, h, plural, svg, time, visible } from "./dom.js";
import { lanes } from "./lanes.js";
import { details } from "./loading.js";
import { propose } from "./moves.js";
import { standstill, state } from "./state.js";
import { asRead, counts } from "./turn.js";

const SIZES = [3, 5, 8, 12, 18, 26, 34, 44]; // pixels per row
const READABLE = 18;
const ROOM = 480; // pixels right of the lanes, for text
let size = 5;

export class TreeView {
  constructor(go) {
    this.go = go;
    this.chosen = null;
    this.box = h("div", {
      class: "tree-box",
      tabindex: "0",
      role: "group",
      "aria-label": "Tree of turns. Tab goes from node to node.",
    });
    this.space = h("div", { class: "tree-space" });
    this.drawing = svg("svg", { class: "tree" });
    this.edges = svg("g");
    this.marks = svg("g");
    this.shown = new Map(); // row -> its mark
    this.drawing.append(this.edges, this.marks);
    this.space.append(this.drawing);
    this.box.append(this.space);
    this.about = h("div", { class: "tree-about", "aria-live": "polite" });
    this.zoomOut = button("−", () => this.zoom(-1), { kind: "small", "aria-label": "Smaller" });
    this.zoomIn = button("+", () => this.zoom(1), { kind: "small", "aria-label": "Larger" });
    this.count = h("span", { class: "muted" });
    this.element = h(
      "div",
      { class: "tree-view" },
      h(
        "div",
        { class: "tree-bar" },
        h("h2", null, "Tree"),
        this.count,
        h("span", { class: "grow" }),
        button("Find me", () => this.find(state.tree.cursor), { kind: "small quiet" }),
        this.zoomOut,
        this.zoomIn,
      ),
      this.box,
      this.about,
    );
    this.box.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.box.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        this.zoom(event.deltaY < 0 ? 1 : -1, event.clientY - this.box.getBoundingClientRect().top);
      },
      { passive: false },
    );
    this.resized = new ResizeObserver(() => (this.laid && this.near !== this.crowded() ? this.layout() : this.schedule()));
    this.resized.observe(this.box);
  }

  draw() {
    if (!state.line) return;
    const fresh = !this.laid;
    this.laid = lanes(state.tree, state.line);
    const { nodes, branches } = state.tree;
    this.count.textContent = `${plural(nodes.length, "node")}, ${plural(branches.length, "branch", "branches")}`;
    this.layout();
    if (fresh) requestAnimationFrame(() => this.find(state.tree.cursor));
    this.tell();
  }

  layout() {
    this.high = SIZES[size];
    this.wide = Math.max(12, Math.min(26, this.high));
    this.near = this.crowded();
    this.drawing.classList.toggle("near", this.near);
    this.space.style.height = `${this.laid.nodes.length * this.high + 24}px`;
    this.space.style.width = `${this.x(this.laid.width) + ROOM}px`;
    this.zoomOut.disabled = size === 0;
    this.zoomIn.disabled = size === SIZES.length - 1;
    this.paint(true);
  }

  /** Whether text to the right of all lanes would be out of view, so that it must be placed beside its node. */
  crowded() {
    return this.x(this.laid.width) > this.box.clientWidth / 2;
  }

  schedule() {
    if (!this.frame)
      this.frame = requestAnimationFrame(() => {
        this.frame = 0;
        this.paint();
      });
  }

  zoom(step, at = this.box.clientHeight / 2) {
    const wanted = Math.min(Math.max(size + step, 0), SIZES.length - 1);
    if (wanted === size) return;
    const row = (this.box.scrollTop + at) / SIZES[size];
    size = wanted;
    this.layout();
    this.box.scrollTop = row * SIZES[size] - at;
    this.paint();
  }

  find(commit) {
    const row = this.laid?.row.get(commit);
    if (row === undefined) return;
    this.box.scrollTop = row * this.high - this.box.clientHeight / 2;
    this.box.scrollLeft = this.x(this.laid.laneOf.get(commit)) - this.box.clientWidth / 2;
    this.paint();
  }

  x(lane) {
    return 18 + lane * this.wide;
  }

  y(row) {
    return 12 + row * this.high + this.high / 2;
  }

  /**
   * Draws the lines again. Nodes are added and removed one by one, so that scrolling costs only what comes into view.
   */
  paint(fresh = false) {
    if (!this.laid || !this.box.isConnected) return;
    const { nodes, tracks } = this.laid;
    const top = this.box.scrollTop;
    const from = Math.max(0, Math.floor((top - 12) / this.high) - 4);
    const to = Math.min(nodes.length - 1, Math.ceil((top + this.box.clientHeight) / this.high) + 4);
    const focus = document.activeElement?.dataset?.commit;
    if (fresh) {
      this.shown.clear();
      this.marks.replaceChildren();
    }
    const seen = tracks.filter((track) => track.last >= from && track.from <= to);
    this.edges.replaceChildren(
      ...seen.map((track) =>
        svg("path", { class: `edge ${track.lane === 0 ? "now" : ""}`, d: this.edge(track, from, to) }),
      ),
    );
    for (const [row, mark] of this.shown) {
      if (row >= from && row <= to) continue;
      mark.remove();
      this.shown.delete(row);
    }
    let next = this.marks.firstElementChild;
    for (let row = from; row <= to; row += 1) {
      const known = this.shown.get(row);
      if (known) {
        next = known.nextElementSibling;
        continue;
      }
      const mark = this.mark(nodes[row], row);
      this.marks.insertBefore(mark, next);
      this.shown.set(row, mark);
    }
    if (fresh && focus) this.marks.querySelector(`[data-commit="${focus}"]`)?.focus({ preventScroll: true });
  }

  mark(node, row) {
    const line = state.line;
    const here = node.commit === state.tree.cursor;
    const labels = this.high >= READABLE;
    const x = this.x(this.laid.laneOf.get(node.commit));
    const y = this.y(row);
    const kind = [
      node.turn === null ? "edits" : "turn",
      here && "cursor",
      line.isUndone(node.commit) && "undone",
      !line.index.has(node.commit) && "aside",
      node.commit === this.chosen && "chosen",
    ]
      .filter(Boolean)
      .join(" ");
    const name = node.kind === "baseline" ? "Start" : node.turn === null ? "edits" : `Turn ${node.turn}`;
    const text = `${node.checkpoints.map((label) => `◆ ${visible(label)}  `).join("")}${name}  ${node.turn === null ? "" : firstLine(node.prompt)}`;
    const size = node.turn === null ? Math.min(3, this.high / 2.5) : Math.max(1.5, Math.min(6, this.high / 3.4));
    const act = (event) => {
      if (event.type === "keydown" && event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      this.choose(node);
    };
    return svg(
      "g",
      {
        class: `node ${kind}`,
        role: "button",
        tabindex: "0",
        "aria-label": `${name}${here ? ", you are here" : ""}: ${clip(firstLine(node.prompt), 60)}`,
        dataset: { commit: node.commit },
        onclick: act,
        onkeydown: act,
      },
      labels && svg("rect", { class: "hit", x: "0", y: y - this.high / 2, width: "100%", height: this.high }),
      svg("circle", { cx: x, cy: y, r: size }),
      labels && svg("text", { x: this.near ? x + 14 : this.x(this.laid.width) + 4, y: y + 4 }, clip(text, 160)),
    );
  }

  edge(track, from, to) {
    const x = this.x(track.lane);
    const last = this.y(Math.min(track.last, to + 2));
    if (track.from === track.first) return `M${x} ${this.y(Math.max(track.first, from - 2))} V ${last}`;
    const start = this.y(track.from);
    const bend = start + this.high;
    if (track.from < from - 2) return `M${x} ${this.y(from - 2)} V ${last}`;
    return `M${this.x(track.parent)} ${start} C ${this.x(track.parent)} ${bend} ${x} ${start} ${x} ${bend} V ${Math.max(last, bend)}`;
  }

  choose(node) {
    this.chosen = node.commit;
    this.paint(true);
    this.tell();
  }

  /** Shows time, summary, number of changes (S3-20), and the available actions. */
  async tell() {
    const node = state.line?.byCommit.get(this.chosen);
    if (!node) {
      fill(this.about, h("p", { class: "muted" }, "Choose a node to see what it did. Hold Ctrl and scroll to zoom."));
      return;
    }
    const onLine = state.line.index.has(node.commit);
    const draw = (detail) => {
      const files = asRead(detail?.files || []);
      const sum = {
        added: files.reduce((all, file) => all + (file.added || 0), 0),
        removed: files.reduce((all, file) => all + (file.removed || 0), 0),
      };
      const anchor = state.line.forks.get(node.commit);
      fill(
        this.about,
        h(
          "div",
          { class: "card-text" },
          h(
            "strong",
            null,
            node.kind === "baseline" ? "Start" : node.turn === null ? "Edits between turns" : `Turn ${node.turn}`,
          ),
          h("span", { class: "muted" }, ` #${node.seq} on ${visible(node.branch)} · `),
          time(node.ended_at),
          h("p", { dir: "auto" }, clip(firstLine(node.prompt), 200)),
          detail && h("p", { class: "muted" }, filesText(files.length), " ", counts(sum)),
        ),
        onLine && button("Show in timeline", () => this.go(node), { kind: "small" }),
        anchor && button("Branches", () => openBranches(node, anchor), { kind: "small" }),
        !onLine && button("Compare", () => openComparison("@", node.commit), { kind: "small" }),
        button("Restore to here", () => propose({ move: "goto", address: node.commit }), {
          kind: "small primary",
          reason: standstill() || (node.commit === state.tree.cursor ? "You are here." : ""),
        }),
      );
    };
    draw(state.details.get(node.commit));
    if (state.details.has(node.commit)) return;
    try {
      const [detail] = await details([node.commit]);
      if (this.chosen === node.commit) draw(detail);
    } catch {
      // the basic facts are shown already
    }
  }
}
