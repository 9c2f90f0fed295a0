// All requests to the server, whose addresses lie below the page's own. Every error response becomes a Refusal with a
// hint on what to do next.

export class Refusal extends Error {
  constructor(status, body) {
    const said = body.message || "The server refused the request.";
    super(said[0].toUpperCase() + said.slice(1));
    this.status = status;
    this.name = body.error || "failed";
    this.hint = body.hint || "";
    this.stale = body.stale === true;
    this.body = body;
  }
}

const GONE = {
  error: "gone",
  message: "The server does not answer.",
  hint: "Start it again with `snapstore ui`, and open the address it prints.",
};

async function ask(path, options) {
  let answer;
  try {
    answer = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch {
    throw new Refusal(0, GONE);
  }
  let body = {};
  try {
    body = await answer.json();
  } catch {
    if (answer.ok)
      throw new Refusal(answer.status, { message: "The server's answer is not JSON.", hint: "Load the page again." });
  }
  if (!answer.ok) throw new Refusal(answer.status, body);
  return body;
}

export const get = (path, signal) => ask(path, { signal });

export const post = (path, body) =>
  ask(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });

/** Encodes a value for a URL. The text of a path that is not UTF-8 may contain lone surrogates. */
const part = (text) => encodeURIComponent(String(text).toWellFormed());

export function query(values) {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return given.length ? `?${given.map(([name, value]) => `${name}=${part(value)}`).join("&")}` : "";
}

const at = (session, rest) => `api/sessions/${part(session)}/${rest}`;

export const readSessions = () => get("api/sessions");
export const readStatus = (session) => get(at(session, "status"));
export const readTree = (session) => get(at(session, "tree"));
export const readNodes = (session, commits) => get(at(session, `nodes${query({ commits: commits.join(",") })}`));
export const readCompaction = (session, commit) => get(at(session, `nodes/${part(commit)}/compaction`));
const named = (key, { path, path_b64 }) => (path_b64 ? { [`${key}_b64`]: path_b64 } : { [key]: path });
export const readDiff = (session, a, b, file) =>
  get(at(session, `diff${query({ a, b, ...named("path", file), ...(file.renamed_from && named("was", file.renamed_from)) })}`));
export const readComparison = (session, a, b) => get(at(session, `compare${query({ a, b })}`));
export const search = (session, q, signal) => get(at(session, `search${query({ q })}`), signal);
export const readStats = () => get("api/stats");
export const preview = (session, body) => post(at(session, "preview"), body);
export const previewDiff = (session, body) => post(at(session, "preview/diff"), body);
export const move = (session, body) => post(at(session, "move"), body);
export const merge = (session, body) => post(at(session, "merge"), body);
export const fork = (session, body) => post(at(session, "fork"), body);
export const changeBranch = (session, name, verb, body) => post(at(session, `branches/${part(name)}/${verb}`), body);
export const deleteBranches = (session, body) => post(at(session, "branches/delete"), body);
export const addCheckpoint = (session, body) => post(at(session, "checkpoints"), body);
export const deleteCheckpoint = (session, name, body) => post(at(session, `checkpoints/${part(name)}/delete`), body);
