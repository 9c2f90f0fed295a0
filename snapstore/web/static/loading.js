// Brings what the page knows up to date: sessions, the tree and status of the one shown, details of what is seen.

import * as api from "./api.js";
import { changed, dispatch, state } from "./state.js";
import { complain, toast } from "./dialogs.js";

let running = null;
let again = false;

/** The shown session anew. Calls while one is under way become one more. */
export function refresh() {
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

async function readAll() {
  const session = state.session;
  try {
    const asked = readSessions();
    asked.catch(() => {}); // waited for below; until then it is nobody's fault
    const name = session || first(await asked);
    if (name) {
      state.session = name;
      const [tree, status] = await Promise.all([api.readTree(name), api.readStatus(name)]);
      if (state.session === name) dispatch({ type: "SET_UNDO_STATE", tree, status });
    }
    await asked;
    broken?.remove();
    broken = null;
    changed("sessions");
  } catch (error) {
    // What is shown stays: it was true, and a person may still want to read it.
    if (!broken?.isConnected) broken = complain(error);
  }
}

async function readSessions() {
  const found = await api.readSessions();
  Object.assign(state, { root: found.root, sessions: found.sessions, agents: found.agents || {} });
  return found;
}

const first = (found) =>
  (found.sessions.find((one) => one.session === found.active) || found.sessions.find((one) => one.turns > 0) || found.sessions[0])?.session;

export async function select(session, conversation = null) {
  const other = state.session !== session;
  Object.assign(state, { session, conversation });
  if (other) {
    Object.assign(state, { tree: null, status: null, line: null });
    state.details.clear();
    state.opened.clear();
    changed("session");
    again = true;
    await refresh();
  }
  changed("sessions");
}

const BATCH = 50;
const wanted = new Set();
let reading = false;

/** Asks for the details of nodes soon: in batches, the last asked first. */
export function want(commits) {
  for (const commit of commits) if (!state.details.has(commit)) wanted.add(commit);
  if (!reading && wanted.size) read();
}

/** What scrolled past unseen is asked for no more. */
export function forget() {
  wanted.clear();
}

async function read() {
  reading = true;
  const session = state.session;
  const batch = [...wanted].slice(-BATCH);
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
    reading = false;
    if (wanted.size && session === state.session) read();
  }
}

/** A node whose record may have grown meanwhile. */
export async function lookAgain(commit) {
  try {
    const { nodes } = await api.readNodes(state.session, [commit]);
    const old = state.details.get(commit);
    if (!old || JSON.stringify(old) === JSON.stringify(nodes[0])) return;
    state.details.set(commit, nodes[0]);
    state.grown.set(commit, (state.grown.get(commit) || 0) + 1);
    changed("details");
  } catch {
    // what was read before still holds
  }
}

/** The details of a few nodes, now. */
export async function details(commits) {
  const missing = commits.filter((commit) => !state.details.has(commit));
  for (let at = 0; at < missing.length; at += BATCH) {
    const { nodes } = await api.readNodes(state.session, missing.slice(at, at + BATCH));
    for (const node of nodes) state.details.set(node.commit, node);
  }
  return commits.map((commit) => state.details.get(commit));
}
