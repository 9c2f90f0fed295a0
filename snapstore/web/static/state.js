// The state of the page, and its few transitions. Rules live in the server; the page only decides what to show.

import { Line } from "./line.js";

export const state = {
  root: "",
  sessions: [],
  agents: {},
  session: null, // the name of the shown session
  conversation: null, // the shown agent session; without one, the line that is current is shown
  follows: true, // whether the page goes along when the conversation continues under another id
  tree: null,
  status: null,
  line: null, // the turns from the start to the tip of the current branch
  details: new Map(), // commit -> node with replies, files, …
  grown: new Map(), // commit -> how often its details changed since they were first read
  opened: new Set(), // what a person unfolded: kept while rows come and go
  view: "timeline",
  moved: false, // the person just moved: the cursor must be scrolled into view
};

const listeners = new Set();

export function onChange(listener) {
  listeners.add(listener);
}

export function changed(what) {
  for (const listener of listeners) listener(what);
}

/** The transitions of the timeline. A finished move is shown at once; what the server reports later wins. */
export function reduce(tree, action) {
  switch (action.type) {
    case "SET_UNDO_STATE":
      return action.tree;
    case "UNDO":
    case "REDO":
      return { ...tree, cursor: action.cursor, expected: action.cursor };
    case "BRANCH":
      return { ...tree, cursor: action.cursor, expected: action.cursor, branch: action.branch, tip: null };
    default:
      throw new Error(`no such transition: ${action.type}`);
  }
}

export function dispatch(action) {
  const tree = reduce(state.tree, action);
  state.tree = tree;
  if (action.status) state.status = action.status;
  state.line = new Line(tree);
  changed("tree");
}

/** The name by which the server is asked for the shown line: an agent session's id means its own line. */
export const shownName = () => state.conversation || state.session;

export const expected = () => state.tree?.expected || state.tree?.cursor;

export const sessionRecord = () => state.sessions.find((one) => one.session === state.session) || null;

/** Returns the agent session that the header shows. */
export function conversationRecord() {
  const known = sessionRecord()?.conversations || [];
  return known.find((one) => one.sessionId === state.conversation) || known.find((one) => one.current) || null;
}

/** Tells whether the session stands on the shown line. */
export const isCurrentLine = () => !state.conversation || conversationRecord()?.current !== false;

export const nameOf = (conversation) =>
  conversation.title || conversation.firstPrompt || conversation.alias || conversation.sessionId;

/** Returns the turn of this session that an agent is working on, if any. */
export const openTurn = () =>
  (state.status?.open_turns || []).find((turn) => turn.session === state.session && turn.status === "open");

/** Returns why nothing may move now, or "". */
export function standstill() {
  const open = openTurn();
  if (open) return `A turn is open: ${open.agent || "the agent"} is working. Moves wait until it ends.`;
  if (state.status?.recovery) return `A change was interrupted: ${state.status.recovery}`;
  return "";
}
