// No key moves anything (S0-50), unless a person enables one key, which then only opens a question (C5, S1-59).

import { h } from "./dom.js";
import { propose } from "./moves.js";
import { state } from "./state.js";

const NAME = "undo-key";

function wanted() {
  try {
    return localStorage.getItem(NAME) === "on";
  } catch {
    return false;
  }
}

export function keySetting() {
  const box = h("input", {
    type: "checkbox",
    checked: wanted(),
    onchange: () => {
      try {
        localStorage.setItem(NAME, box.checked ? "on" : "off");
      } catch {
        box.checked = false; // the choice could not be stored, so the key stays off
      }
    },
  });
  return h("label", { class: "choice" }, box, "Ctrl+Shift+Z (or ⌘⇧Z) asks whether to undo the last turn");
}

export function listenToKeys() {
  document.addEventListener("keydown", (event) => {
    const pressed = event.key.toLowerCase() === "z" && event.shiftKey && (event.ctrlKey || event.metaKey);
    if (!pressed || !wanted() || !state.line?.turn) return;
    if (document.querySelector("dialog[open]") || event.target.closest("input, textarea")) return;
    event.preventDefault();
    propose({ move: "undo", count: 1 });
  });
}
