// The entry point of the page: draws the views from the state.

import { branchesPanel } from "./branches.js";
import { checkpointsPanel } from "./checkpoints.js";
import { closeMenu, complain, leaveDialogs } from "./dialogs.js";
import { byId, fill, icon } from "./dom.js";
import { Header } from "./header.js";
import { listenToKeys } from "./keys.js";
import { listen } from "./live.js";
import { refresh, select } from "./loading.js";
import { searchPanel, statsPanel } from "./panels.js";
import { RedoBar } from "./redobar.js";
import { drawSidebar } from "./sidebar.js";
import { onChange, shownName, state } from "./state.js";
import { Timeline } from "./timeline.js";
import { TreeView } from "./tree.js";

const timeline = new Timeline(byId("timeline"));
const redoBar = new RedoBar(byId("redo-bar"));
const header = new Header(byId("header"), { show: go, view: setView, find });
const panel = byId("panel");
let tree = null;
let drawn = 0;
let pressed = false; // a button of the mouse or a finger is down

/** Shows a node: in the timeline if it is on the current line, else in the tree. */
function go(node) {
  if (state.line.index.has(node.commit)) {
    setView("timeline");
    timeline.show(node.commit, "center");
  } else {
    setView("tree");
    tree.choose(node);
    tree.find(node.commit);
  }
}

function setView(view) {
  state.view = view;
  asking?.abort();
  clearTimeout(patience);
  if (view !== "search") header.field.value = "";
  drawView();
  header.draw();
  redoBar.draw();
}

function drawView() {
  const view = state.view;
  byId("timeline").hidden = view !== "timeline";
  panel.hidden = view === "timeline";
  if (view === "timeline") {
    timeline.draw();
  } else if (view === "tree") {
    tree ||= new TreeView(go);
    if (tree.element.parentElement !== panel) fill(panel, tree.element);
    tree.draw();
  } else if (view === "branches") {
    fill(panel, branchesPanel(drawView));
  } else if (view === "checkpoints") {
    fill(panel, checkpointsPanel(go));
  } else if (view === "stats") {
    fill(panel, statsPanel());
  }
}

let asking = null;
let patience = 0;

/** Searches once a person stops typing. */
function find(text) {
  const wanted = text.trim();
  clearTimeout(patience);
  asking?.abort();
  if (!wanted) {
    if (state.view === "search") setView("timeline");
    return;
  }
  patience = setTimeout(async () => {
    asking = new AbortController();
    const { signal } = asking;
    try {
      const found = await searchPanel(wanted, (commit) => go(state.line.byCommit.get(commit)), signal);
      if (signal.aborted) return;
      state.view = "search";
      drawView();
      fill(panel, found);
      header.draw();
      redoBar.draw();
    } catch (error) {
      if (!signal.aborted) complain(error);
    }
  }, 150);
}

/** Changes within one frame are drawn once. */
const pending = new Set();
onChange((what) => {
  pending.add(what);
  drawSoon();
});

function drawSoon() {
  if (pressed || !pending.size) return;
  drawn ||= requestAnimationFrame(() => {
    drawn = 0;
    if (!pressed) drawPending();
  });
}

function drawPending() {
  const due = new Set(pending);
  pending.clear();
  if (due.has("session")) {
    tree = null;
    if (state.view === "search") setView("timeline"); // the results belong to the other session
  }
  const only = due.size === 1 && due.has("details");
  if (state.view === "timeline" && only) timeline.drawDetails();
  else if (state.view === "timeline") timeline.draw();
  else if (!only && state.view !== "search" && state.view !== "stats") drawView();
  if (only) return;
  drawSidebar();
  header.draw();
  redoBar.draw();
}

// Drawing replaces elements, and a browser drops the click of a button that was replaced between press and release.
// So drawing waits for the release. The timeout lets the click come first.
window.addEventListener("pointerdown", () => (pressed = true), true);
const release = () =>
  setTimeout(() => {
    pressed = false;
    drawSoon();
  });
for (const end of ["pointerup", "pointercancel", "dragend"]) window.addEventListener(end, release, true);
window.addEventListener("blur", release); // the window's own, not that of an element within it

const THEMES = { auto: "auto", light: "sun", dark: "moon" };

function theme(next) {
  const root = document.documentElement;
  if (next === "auto") delete root.dataset.theme;
  else root.dataset.theme = next;
  const label = `Theme: ${next}. Switch.`;
  const control = byId("theme");
  fill(control, icon(THEMES[next]));
  control.setAttribute("aria-label", label);
  control.title = label;
  control.dataset.theme = next;
}

theme(document.documentElement.dataset.theme || "auto");
byId("theme").addEventListener("click", () => {
  const order = Object.keys(THEMES);
  const next = order[(order.indexOf(byId("theme").dataset.theme) + 1) % order.length];
  theme(next);
  try {
    localStorage.setItem("theme", next);
  } catch {
    // the choice is just not remembered
  }
});

const shut = () => {
  if (!document.body.classList.contains("drawer")) return;
  document.querySelector(".drawer-button").focus();
  document.body.classList.remove("drawer");
  byId("veil").hidden = true;
};
byId("veil").addEventListener("click", shut);
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") shut();
});
byId("timeline").addEventListener("wheel", closeMenu, { passive: true });

function addressed() {
  try {
    return decodeURIComponent(location.hash.slice(1)) || null;
  } catch {
    return null; // not an address of ours
  }
}
window.addEventListener("hashchange", () => {
  const name = addressed();
  const has = (one) => one.session === name || one.conversations.some((other) => other.sessionId === name);
  const found = state.sessions.find(has);
  if (name === shownName() || !found) return;
  if (leaveDialogs()) select(found.session, found.session === name ? null : name);
  else history.pushState(null, "", `#${encodeURIComponent(shownName())}`); // a move is in progress
});

header.draw();
state.session = addressed();
await refresh();
document.body.dataset.ready = "yes";
listen();
listenToKeys();
