// What another process or a running agent does appears by itself.

import { changed, state } from "./state.js";
import { refresh, select } from "./loading.js";
import { toast } from "./dialogs.js";

export function listen() {
  const events = new EventSource("/api/events");
  const on = (name, act) =>
    events.addEventListener(name, (event) => {
      try {
        act(JSON.parse(event.data));
      } catch {
        refresh();
      }
    });
  on("session.updated", (said) => {
    // Our own move is known already; whatever else happened is read anew.
    if (said.session !== state.session || said.expected !== state.tree?.cursor || said.seq !== state.seq) refresh();
    state.seq = said.seq;
  });
  on("session_created", () => refresh());
  on("session.materialized", async (said) => {
    await refresh();
    // The conversation shown goes on under another id: its header follows (S4-18).
    if (said.session === state.session && state.conversation) await select(state.session, null);
    changed("sessions");
  });
  let lost = null;
  events.addEventListener("open", () => {
    if (lost) refresh();
    lost?.remove();
    lost = null;
    document.body.dataset.live = "on";
  });
  events.addEventListener("error", () => {
    document.body.dataset.live = "off";
    if (!lost?.isConnected) lost = toast("The server does not answer. What you see may be out of date.", { kind: "bad", hint: "It is tried again by itself. If it was stopped: `snapstore ui`." });
  });
}
