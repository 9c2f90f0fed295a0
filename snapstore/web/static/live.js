// Live updates: changes by other processes and by running agents appear on the page.
//
// A browser keeps at most six connections to a server, and an event stream occupies one for good: with the page open in
// seven tabs, no request would be answered any more. So one tab listens and tells the others. When that tab closes, the
// next one takes over.

import { changed, expected, state } from "./state.js";
import { lookAgain, refresh, select } from "./loading.js";
import { complain, toast } from "./dialogs.js";

const NAMES = ["hello", "session.updated", "session_created", "session.materialized", "store_lost"];
const ours = `events ${location.pathname}`; // a restarted server has another path
const others = new BroadcastChannel(ours);
let listening = false; // whether this tab is the listener
let live = ""; // the state of the connection: open, lost or over
let early = false; // a message arrived before this tab was ready to handle it

others.addEventListener("message", ({ data }) => {
  if (data.name === "who") {
    if (listening && live) others.postMessage({ name: "line", said: live });
  } else if (!acting) early = true;
  else heard(data.name, data.said);
});

let acting = false;

export function listen() {
  acting = true;
  if (early) refresh(true);
  others.postMessage({ name: "who" });
  navigator.locks.request(ours, () => new Promise(stream)); // never released: the lock ends with the tab
}

function stream() {
  listening = true;
  const heir = live !== ""; // another tab listened before: events in between may have been missed
  const tell = (name, said) => {
    others.postMessage({ name, said });
    heard(name, said);
  };
  const events = new EventSource("api/events");
  for (const name of NAMES)
    events.addEventListener(name, (event) => {
      let said = {};
      try {
        said = JSON.parse(event.data);
      } catch {
        // then the event carries no data
      }
      tell(name, said);
    });
  events.addEventListener("open", () => tell("line", "open"));
  if (heir) events.addEventListener("open", () => tell("again"), { once: true });
  // CLOSED is final: a server answers there, but refuses us.
  events.addEventListener("error", () => tell("line", events.readyState === EventSource.CLOSED ? "over" : "lost"));
}

function heard(name, said) {
  if (name === "line") return line(said);
  if (name === "hello") return greeted(said.sessions || {});
  if (name === "session.updated") {
    // An agent may write its conversation after the turn has ended, so the record of the last turn can still grow.
    if (said.session === state.session && state.details.has(said.expected)) lookAgain(said.expected);
    return refresh();
  }
  if (name === "session.materialized") return materialized(said);
  if (name === "store_lost") {
    missing ||= complain({
      status: 404,
      message: "The store is gone.",
      hint: "Check whether its folder was moved: `snapstore check` in the project says more.",
    });
    return null;
  }
  return refresh(true);
}

let missing = null;

/**
 * Handles a new connection: events between the first read and the connection, or while connection or store were lost,
 * may have been missed.
 */
function greeted(sessions) {
  missing?.remove();
  missing = null;
  const known = sessions[state.session];
  if (!known && state.tree && Object.keys(sessions).length) {
    toast("The session that was shown is no longer in the store.", { kind: "bad", hint: "Another one is shown." });
    return select(null);
  }
  return known && known.expected !== expected() ? refresh(true) : null;
}

/** The shown conversation continues under another id, and its header follows (S4-18). */
async function materialized(said) {
  const shown = state.conversation;
  await refresh(true);
  const mine = said.session === state.session && shown && state.conversation === shown;
  if (mine && said.id === state.conversation) state.follows = true;
  else if (mine && state.follows) await select(state.session, null);
  changed("sessions");
}

const HINTS = {
  lost: "The page keeps trying. If the server was stopped, run `snapstore ui`.",
  over: "It was restarted: open the address that `snapstore ui` printed.",
};
let warned = null;

function line(now) {
  if (now === live) return;
  if (now === "open" && live) refresh(true);
  live = now;
  document.body.dataset.live = now === "open" ? "on" : "off";
  warned?.remove();
  warned =
    now === "open"
      ? null
      : toast("The server does not answer. What you see may be out of date.", { kind: "bad", hint: HINTS[now] });
}
