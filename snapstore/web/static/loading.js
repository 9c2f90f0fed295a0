// Reads what the page shows: the sessions, the tree and status of the shown session, and details of visible nodes.

import * as api from "./api.js";
import { changed, dispatch, isCurrentLine, shownName, state } from "./state.js";
import { complain, toast } from "./dialogs.js";

let running = null;
let again = false;
let sessionsDue = true;

/**
 * Reads the shown session again. Calls during a read are merged into one more read. `all` also reads the list of
 * sessions now.
 */
export function refresh(all = false) {
  sessionsDue ||= all;
  if (running) {
    again = true;
    return running;
  }
  running = (async () => {
    do {
      again = false;
      await readAll();
    } while (again);
  })().finally(() => {
    running = null;
  });
  return running;
}

let broken = null;

/** Reads the timeline first. The list of sessions takes longer if sessions are long, and can come a moment later. */
async function readAll() {
  try {
    const asked = !state.session;
    const name = shownName() || first(await readSessions());
    if (name) await readSession(name);
    if (sessionsDue) await readSessions();
    else if (!asked) soon ||= setTimeout(() => refresh(true), CALM);
    broken?.remove();
    broken = null;
  } catch (error) {
    if (error.status === 404 && error.name === "unknown" && state.session && !state.tree) {
      Object.assign(state, { session: null, conversation: null }); // an old address: it is not in this store
      again = true;
      return;
    }
    // The page keeps what it shows, because a person may still want to read it.
    if (!broken?.isConnected) broken = complain(error);
  }
}

async function readSession(name) {
  const [tree, status] = await Promise.all([api.readTree(name), api.readStatus(name)]);
  if (state.session !== null && shownName() !== name) return;
  // A page that was opened with an id shows the line of that agent session.
  if (tree.session !== name) state.conversation = status.conversation?.id || null;
  state.session = tree.session;
  dispatch({ type: "SET_UNDO_STATE", tree, status });
  history.replaceState(null, "", `#${encodeURIComponent(shownName())}`);
}

const CALM = 1500; // milliseconds between two reads of all sessions while one of them is busy
let soon = 0;

async function readSessions() {
  clearTimeout(soon);
  soon = 0;
  sessionsDue = false;
  const found = await api.readSessions();
  Object.assign(state, { root: found.root, sessions: found.sessions, agents: found.agents || {} });
  changed("sessions");
  return found;
}

const first = (found) =>
  (
    found.sessions.find((one) => one.session === found.active) ||
    found.sessions.find((one) => one.turns > 0) ||
    found.sessions[0]
  )?.session;

/** Reports a refusal, and refreshes the page if it was stale. */
export async function refused(error) {
  if (error.stale) {
    toast("The session has moved meanwhile. Nothing was written.", {
      kind: "bad",
      hint: "The page is up to date now: look again, then repeat.",
    });
    await refresh();
  } else {
    complain(error);
    if (error.status === 423) refresh();
  }
}

export async function select(session, conversation = null) {
  const elsewhere = state.session !== session;
  const other = elsewhere || state.conversation !== conversation;
  Object.assign(state, { session, conversation });
  state.follows = isCurrentLine();
  if (other) {
    const place = session && `#${encodeURIComponent(shownName())}`;
    if (place && location.hash !== place) history.pushState(null, "", place); // so that the browser's back button works
    Object.assign(state, { tree: null, status: null, line: null });
    wanted.clear();
    if (elsewhere) {
      state.details.clear();
      state.opened.clear();
    }
    changed("session");
    again = true;
    await refresh();
  }
  changed("sessions");
}

const BATCH = 50;
const wanted = new Set();
let reading = null; // the batch being read

/** Requests the details of nodes soon: in batches, the latest request first. */
export function want(commits) {
  for (const commit of commits) if (!state.details.has(commit) && !reading?.includes(commit)) wanted.add(commit);
  if (!reading && wanted.size) read();
}

/** Drops requests for nodes that were scrolled past unseen. */
export function forget() {
  wanted.clear();
}

async function read() {
  const session = state.session;
  const batch = [...wanted].slice(-BATCH);
  reading = batch;
  for (const commit of batch) wanted.delete(commit);
  try {
    const { nodes } = await api.readNodes(session, batch);
    if (session === state.session) {
      for (const node of nodes) state.details.set(node.commit, node);
      changed("details");
    }
  } catch (error) {
    if (!broken?.isConnected) broken = toast(error.message, { hint: error.hint, kind: "bad" });
  } finally {
    reading = null;
    if (wanted.size) read();
  }
}

/** Reads a node again whose record may have grown. */
export async function lookAgain(commit) {
  try {
    const { nodes } = await api.readNodes(state.session, [commit]);
    const old = state.details.get(commit);
    if (!old || JSON.stringify(old) === JSON.stringify(nodes[0])) return;
    state.details.set(commit, nodes[0]);
    state.grown.set(commit, (state.grown.get(commit) || 0) + 1);
    changed("details");
  } catch {
    // the details read before are still valid
  }
}

/** Reads the details of a few nodes now. */
export async function details(commits) {
  const missing = commits.filter((commit) => !state.details.has(commit));
  for (let at = 0; at < missing.length; at += BATCH) {
    const { nodes } = await api.readNodes(state.session, missing.slice(at, at + BATCH));
    for (const node of nodes) state.details.set(node.commit, node);
  }
  return commits.map((commit) => state.details.get(commit));
}
