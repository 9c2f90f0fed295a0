// Dialogs, toasts and menus.

import { button, byId, coded, fill, h, refusalText } from "./dom.js";

/**
 * Opens a modal dialog and resolves when it closes. `build(close)` returns its parts. While `stays()` is true, Escape
 * is ignored.
 */
export function openDialog(build, { kind = "", label, stays = () => false } = {}) {
  return new Promise((resolve) => {
    const dialog = h("dialog", {
      class: `dialog ${kind}`,
      "aria-label": label,
      "aria-labelledby": label ? null : "dialog-title",
    });
    const close = (value) => {
      dialog.returned = value;
      dialog.close();
    };
    // Not with `cancel` events: a browser does not let a page prevent the second of two in a row.
    const held = (event) => {
      if (event.key === "Escape" && stays()) event.preventDefault();
    };
    window.addEventListener("keydown", held, true);
    opened.set(dialog, stays);
    dialog.addEventListener("close", () => {
      opened.delete(dialog);
      window.removeEventListener("keydown", held, true);
      byId("toasts").append(...dialog.querySelectorAll(".toast.good")); // the success messages must remain readable
      dialog.remove();
      resolve(dialog.returned);
    });
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog && kind !== "ask") close();
    });
    dialog.append(...[build(close, dialog)].flat());
    document.body.append(dialog);
    dialog.showModal();
  });
}

const opened = new Map(); // dialog -> whether it must stay open

/** Closes all dialogs so that something else can be shown. Returns false if one of them must stay open. */
export function leaveDialogs() {
  if ([...opened.values()].some((stays) => stays())) return false;
  for (const dialog of opened.keys()) dialog.close();
  closeMenu();
  return true;
}

export function dialogHead(title, close) {
  return h(
    "header",
    { class: "dialog-head" },
    h("h2", { id: "dialog-title" }, title),
    button("Close", () => close(), { icon: "close", only: true }),
  );
}

/** Asks a yes-or-no question. */
export async function confirm({ title, text, detail, yes, kind = "primary" }) {
  return (
    (await openDialog(
      (close) => [
        h(
          "div",
          { class: "dialog-body" },
          h("h2", { id: "dialog-title" }, title),
          text && h("p", { class: "lead" }, text),
          detail,
        ),
        h(
          "footer",
          { class: "dialog-foot" },
          button("Cancel", () => close(false), { autofocus: true }),
          button(yes, () => close(true), { kind }),
        ),
      ],
      { kind: "ask" },
    )) === true
  );
}

/** Asks for a line of text and acts on it. A refusal is shown beside the input. */
export function askText({ title, text, label, value = "", yes, act }) {
  return openDialog(
    (close) => {
      const field = h("input", {
        id: "dialog-field",
        type: "text",
        value,
        maxlength: "200",
        autocomplete: "off",
        spellcheck: "false",
      });
      const refused = h("p", { class: "notice bad", role: "alert", hidden: true });
      const form = h(
        "form",
        {
          class: "dialog-form",
          onsubmit: async (event) => {
            event.preventDefault();
            const said = field.value.trim();
            if (!said) return field.focus();
            try {
              close(await act(said));
            } catch (error) {
              refused.hidden = false;
              fill(refused, refusalText(error));
              field.focus();
            }
          },
        },
        h(
          "div",
          { class: "dialog-body" },
          h("h2", { id: "dialog-title" }, title),
          text && h("p", { class: "lead" }, text),
          h("label", { class: "field" }, h("span", null, label), field),
          refused,
        ),
        h(
          "footer",
          { class: "dialog-foot" },
          button("Cancel", () => close()),
          h("button", { class: "button primary", type: "submit" }, yes),
        ),
      );
      queueMicrotask(() => field.select());
      return form;
    },
    { kind: "ask" },
  );
}

/** Shows a short message at the edge of the page. Errors stay longer. */
export function toast(text, { hint = "", kind = "", actions = [] } = {}) {
  const lasting = kind === "bad" || actions.length > 0;
  const element = h(
    "div",
    { class: `toast ${kind}`, role: kind === "bad" ? "alert" : "status" },
    h("div", { class: "toast-text" }, h("p", null, text), hint && h("p", { class: "hint" }, coded(hint))),
    actions.map(([label, act]) =>
      button(
        label,
        () => {
          element.remove();
          act();
        },
        { kind: "small" },
      ),
    ),
    button("Dismiss", () => element.remove(), { icon: "close", only: true }),
  );
  const box = byId("toasts");
  const open = [...document.querySelectorAll("dialog[open]")].pop();
  // A modal dialog makes the rest of the page inert, so its messages must be inside it.
  (open ? dialogToasts(open) : box).append(element);
  if (kind !== "bad")
    element.parentElement.querySelectorAll(".toast:not(.bad)").forEach((old) => old !== element && old.remove());
  while (element.parentElement.childElementCount > 4) element.parentElement.firstElementChild.remove();
  setTimeout(() => element.remove(), lasting ? 20000 : 5000);
  return element;
}

function dialogToasts(dialog) {
  return (
    dialog.querySelector(":scope > .toasts") || dialog.appendChild(h("div", { class: "toasts", "aria-live": "polite" }))
  );
}

export const complain = (error) => {
  if (error?.status === undefined) console.error(error);
  return toast(error.message || String(error), {
    hint: error.hint || (error.status === undefined ? "Load the page again." : ""),
    kind: "bad",
  });
};

let menu = null;

export function closeMenu() {
  menu?.close();
}

/** Opens a menu at a point. Items are [label, act, reason?], or null for a separator. */
export function openMenu(x, y, items, label) {
  closeMenu();
  const before = document.activeElement;
  const element = h("div", { class: "menu", role: "menu", "aria-label": label });
  for (const item of items) {
    if (!item) {
      element.append(h("hr", { role: "separator" }));
      continue;
    }
    const [name, act, reason] = item;
    element.append(
      h(
        "button",
        {
          type: "button",
          role: "menuitem",
          tabindex: "-1",
          "aria-disabled": reason ? "true" : null,
          title: reason || null,
          onclick: () => {
            if (reason) return;
            close(true);
            act();
          },
        },
        name,
        reason && h("span", { class: "reason" }, reason),
      ),
    );
  }
  const entries = [...element.querySelectorAll("[role=menuitem]")];
  const outside = (event) => {
    if (!element.contains(event.target)) close(false);
  };
  const keys = (event) => {
    const at = entries.indexOf(document.activeElement);
    const next = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: entries.length - 1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") {
      event.preventDefault();
      close(true);
    } else if (next !== undefined) {
      event.preventDefault();
      entries[(next + entries.length) % entries.length].focus();
    }
  };
  const close = (giveBack) => {
    document.removeEventListener("pointerdown", outside, true);
    window.removeEventListener("blur", leave);
    element.remove();
    menu = null;
    if (giveBack) before?.focus?.();
  };
  const leave = () => close(false);
  element.addEventListener("keydown", keys);
  document.addEventListener("pointerdown", outside, true);
  window.addEventListener("blur", leave);
  (document.querySelector("dialog[open]") || document.body).append(element);
  const box = element.getBoundingClientRect();
  element.style.left = `${Math.max(8, Math.min(x, innerWidth - box.width - 8))}px`;
  element.style.top = `${Math.max(8, Math.min(y, innerHeight - box.height - 8))}px`;
  menu = { close: () => close(false) };
  entries[0]?.focus();
}
