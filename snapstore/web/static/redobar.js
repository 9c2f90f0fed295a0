// The bar that floats at the bottom while turns are undone (S0-36).

import { button, h, turnsText } from "./dom.js";
import { propose } from "./moves.js";
import { openTurn, standstill, state } from "./state.js";

export class RedoBar {
  constructor(element) {
    this.element = element;
  }

  draw() {
    const undone = openTurn() ? [] : state.line?.undone || []; // a new prompt leaves undone turns behind (S4-19)
    this.element.hidden = !undone.length || state.view !== "timeline";
    if (!undone.length) return;
    const reason = standstill();
    const sign = `${undone.length}|${reason}`;
    if (this.sign === sign) return;
    this.sign = sign;
    this.element.replaceChildren(
      h("span", { class: "redo-text" }, `↩ ${turnsText(undone.length)} undone`),
      button("Redo Next", () => propose({ move: "redo", count: 1 }), { kind: "small", reason }),
      button("Redo All", () => propose({ move: "redo", count: undone.length }), { kind: "small primary", reason }),
    );
  }
}
