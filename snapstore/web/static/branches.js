// All branches of a session: rename, archive, promote to main, delete one by one or many at once.

import * as api from "./api.js";
import { openComparison } from "./compare.js";
import { askText, confirm, openMenu } from "./dialogs.js";
import { button, clip, firstLine, h, owner, plural, time, turnsText, visible } from "./dom.js";
import { change, done, propose } from "./moves.js";
import { expected, standstill, state } from "./state.js";

const chosen = new Set();

export function branchesPanel(redraw) {
  const current = (branch) => (branch.state === "current" ? 1 : 0);
  const all = [...(state.tree?.branches || [])].sort((a, b) => current(b) - current(a) || b.seq - a.seq);
  const listed = all.filter((branch) => branch.state !== "archived");
  const archived = all.filter((branch) => branch.state === "archived");
  for (const name of [...chosen])
    if (!all.some((branch) => branch.name === name && branch.state !== "current")) chosen.delete(name);
  const row = (branch) => branchRow(branch, redraw);
  return h(
    "div",
    { class: "sheet" },
    h("h2", null, "Branches"),
    h(
      "p",
      { class: "muted" },
      "A turn after an undo starts a branch automatically. The turns that were left stay here.",
    ),
    warning(listed.length),
    chosen.size > 0 &&
      h(
        "div",
        { class: "batch" },
        h("span", null, `${chosen.size} chosen`),
        button("Delete selected", () => removeMany(redraw), { kind: "small danger" }),
        button(
          "Clear",
          () => {
            chosen.clear();
            redraw();
          },
          { kind: "small quiet" },
        ),
      ),
    h("ul", { class: "cards" }, listed.map(row)),
    archived.length > 0 &&
      h(
        "section",
        null,
        h("h3", null, "Archive ", h("span", { class: "count" }, archived.length)),
        h("ul", { class: "cards archived" }, archived.map(row)),
      ),
  );
}

/**
 * Warns if there are many branches (S0-48, S0-49). Two settings give the count at which to warn and the count at which
 * the oldest branch is archived; 0 means never.
 */
function warning(number) {
  const { max_branches: most, warn_branches: many } = state.tree || {};
  if (!many || number < many) return null;
  const then = most ? `: above ${most}, the oldest is archived automatically. Nothing is lost.` : ".";
  return h("p", { class: "notice", role: "status" }, `${plural(number, "branch", "branches")}${then}`);
}

function branchRow(branch, redraw) {
  const name = visible(branch.name);
  const here = branch.state === "current";
  const box = h("input", {
    type: "checkbox",
    checked: chosen.has(branch.name),
    disabled: here,
    "aria-label": `Choose ${name}`,
    onchange: (event) => {
      if (event.target.checked) chosen.add(branch.name);
      else chosen.delete(branch.name);
      redraw();
    },
  });
  const from = branch.parted_at === null ? "" : ` · diverged after turn ${branch.parted_at}`;
  const actions = (event) => {
    const place = event.currentTarget.getBoundingClientRect();
    const on = here ? "You are on it." : "";
    const away = branch.state === "archived";
    openMenu(
      place.right - 200,
      place.bottom + 4,
      [
        ["Rename…", () => rename(branch)],
        [
          away ? "Unarchive" : "Archive",
          () =>
            change(
              () =>
                api.changeBranch(state.session, branch.name, away ? "unarchive" : "archive", { expected: expected() }),
              away ? "Listed again." : "Archived.",
            ),
          on,
        ],
        ["Make it the main branch", () => promote(branch), branch.name === "main" ? "It is the main branch." : ""],
        ["Compare with the current line", () => openComparison(state.tree.branch, branch.name), on],
        null,
        ["Delete…", () => remove(branch), on],
      ],
      `Branch ${name}`,
    );
  };
  return h(
    "li",
    { class: `card ${here ? "current" : ""}`, dataset: { branch: branch.name } },
    box,
    h(
      "div",
      { class: "card-text" },
      h("strong", null, h("bdi", null, visible(branch.label || branch.name))),
      branch.label !== branch.name && h("span", { class: "muted" }, ` ${name}`),
      here && h("span", { class: "badge accent" }, "current"),
      owner(branch),
      branch.pinned_by.map((pin) => h("span", { class: "badge pin" }, `◆ ${visible(pin)}`)),
      h(
        "p",
        { class: "muted" },
        `${turnsText(branch.turns)}${from} · `,
        clip(firstLine(branch.prompt), 120) || "(no turns yet)",
        " · ",
        time(branch.ended_at),
      ),
    ),
    !here &&
      button("Switch", () => propose({ move: "switch", address: branch.name }), {
        kind: "small",
        reason: standstill(),
        "aria-label": `Switch to ${name}`,
      }),
    button(`Actions for branch ${name}`, actions, { icon: "more", only: true, "aria-haspopup": "menu" }),
  );
}

async function rename(branch) {
  const at = expected();
  await askText({
    title: "Rename branch",
    label: "Name",
    value: branch.name,
    yes: "Rename",
    act: async (to) => {
      if (to === branch.name) return;
      await api.changeBranch(state.session, branch.name, "rename", { to, expected: at });
      done(`Renamed to ${visible(to)}.`);
    },
  });
}

async function promote(branch) {
  const text = "It takes the name main, and the previous main branch is archived. No file changes.";
  if (!(await confirm({ title: `Make ${visible(branch.label)} the main branch?`, text, yes: "Make it main" }))) return;
  await change(
    () => api.changeBranch(state.session, branch.name, "promote", { expected: expected() }),
    "This is the main branch now.",
  );
}

async function remove(branch) {
  const text = `${turnsText(branch.own_turns)} on no other branch. They can be restored until they are pruned.`;
  if (
    !(await confirm({ title: `Delete branch ${visible(branch.label)}?`, text, yes: "Delete branch", kind: "danger" }))
  )
    return;
  await change(
    () => api.changeBranch(state.session, branch.name, "delete", { expected: expected() }),
    "Branch deleted.",
  );
}

async function removeMany(redraw) {
  const names = [...chosen];
  const detail = h(
    "ul",
    { class: "plain" },
    names.map((name) => h("li", null, h("bdi", null, visible(name)))),
  );
  if (
    !(await confirm({
      title: `Delete ${plural(names.length, "branch", "branches")}?`,
      text: "No file changes.",
      detail,
      yes: "Delete",
      kind: "danger",
    }))
  )
    return;
  await change(
    () => api.deleteBranches(state.session, { names, expected: expected() }),
    `${plural(names.length, "branch", "branches")} deleted.`,
  );
  chosen.clear();
  redraw();
}
