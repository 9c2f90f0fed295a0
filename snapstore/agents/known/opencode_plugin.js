// Tells snapstore what happens in opencode. Whatever goes wrong here, opencode goes on undisturbed.
// Each event is one JSON document on the standard input of `snapstore hook opencode`, one after the other.

import { spawn } from "node:child_process";

const command = ["snapstore", "hook", "opencode"];
const { PYTHONHOME, PYTHONPATH, ...env } = process.env; // a project's own modules are not for snapstore
const patience = 120_000; // milliseconds that opencode waits for one event at most

const run = (document) =>
  new Promise((resolve) => {
    const timer = setTimeout(resolve, patience);
    const done = () => {
      clearTimeout(timer);
      resolve();
    };
    try {
      const text = JSON.stringify(document); // before there is a child that waits for it
      const child = spawn(command[0], command.slice(1), { env, stdio: ["pipe", "ignore", "ignore"] });
      child.on("error", done);
      child.on("close", done);
      child.stdin.on("error", () => {});
      child.stdin.end(text);
    } catch {
      done();
    }
  });

const quietly =
  (handler) =>
  async (...given) => {
    try {
      await handler(...given);
    } catch {
      // a shape of event that is not known yet
    }
  };

export const Snapstore = async ({ directory, worktree } = {}) => {
  const parents = new Map(); // of child sessions: the one at the top, which a person talks to
  const stopped = new Set(); // both kinds of "idle" are sent for one stop
  let last = Promise.resolve();

  const tell = (event, session, more = {}) => {
    if (!session) return last;
    if (event === "stop" && stopped.has(session)) return last;
    if (event === "stop") stopped.add(session);
    else stopped.delete(session);
    const document = {
      event,
      session_id: session,
      parent_id: parents.get(session),
      directory: directory || worktree,
      ...more,
    };
    last = last.then(() => run(document));
    return last;
  };

  return {
    "chat.message": quietly((input, { message, parts } = {}) => {
      const texts = (parts ?? []).filter((part) => part.type === "text" && !part.synthetic).map((part) => part.text);
      return tell("prompt", input.sessionID, { prompt: texts.join("\n"), prompt_id: input.messageID ?? message?.id });
    }),
    "tool.execute.before": quietly(({ tool, sessionID, callID }, output) =>
      tell("before", sessionID, { tool, args: output?.args, call_id: callID }),
    ),
    "tool.execute.after": quietly(({ tool, sessionID, callID, args }) =>
      tell("after", sessionID, { tool, args, call_id: callID }),
    ),
    event: quietly(({ event: { type, properties } }) => {
      const info = properties?.info;
      if (type === "session.created") {
        if (info.parentID) parents.set(info.id, parents.get(info.parentID) ?? info.parentID);
        return tell("start", info.id);
      }
      if (type === "session.idle" || (type === "session.status" && properties.status.type === "idle"))
        return tell("stop", properties.sessionID);
      if (type === "session.deleted") return tell("end", info.id);
    }),
  };
};
