// What another process or a running agent does appears by itself.

import { changed, state } from "./state.js";
import { lookAgain, refresh, select } from "./loading.js";
import { complain, toast } from "./dialogs.js";

export function listen() {
  const events = new EventSource("api/events");
  const on = (name, act) =>
    events.addEventListener(name, (event) => {
      try {
        act(JSON.parse(event.data));
      } catch {
        refresh();
      }
    });
  on("session.updated", (said) => {
    refresh();
    // An agent may write its conversation down after the turn: the last turn's record can still grow.
    if (said.session === state.session && state.details.has(said.expected)) lookAgain(said.expected);
  });
  on("session_created", () => refresh(true));
  on("session.materialized", async (said) => {
    await refresh(true);
    // The conversation shown goes on under another id: its header follows (S4-18).
    if (said.session === state.session && state.conversation) await select(state.session, null);
    changed("sessions");
  });
  on("store_lost", () =>
    complain({
      status: 404,
      message: "The store is gone.",
      hint: "Look whether its folder was moved; `snapstore check` in the project tells more.",
    }),
  );
  let lost = null;
  events.addEventListener("open", () => {
    if (lost) refresh(true);
    lost?.remove();
    lost = null;
    document.body.dataset.live = "on";
  });
  events.addEventListener("error", () => {
    document.body.dataset.live = "off";
    const over = events.readyState === EventSource.CLOSED; // somebody answers there, and does not know us
    if (over || !lost?.isConnected) {
      lost?.remove();
      lost = toast("The server does not answer. What you see may be out of date.", {
        kind: "bad",
        hint: over
          ? "It was started anew: open the address that `snapstore ui` printed."
          : "It is tried again by itself. If it was stopped: `snapstore ui`.",
      });
    }
  });
}
