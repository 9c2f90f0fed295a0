// The branches that fork off at a turn, one at a time.

import { openComparison } from "./compare.js";
import { complain, dialogHead, openDialog } from "./dialogs.js";
import { button, fill, h, svg, time, turnsText, visible } from "./dom.js";
import { details } from "./loading.js";
import { propose } from "./moves.js";
import { standstill, state } from "./state.js";
import { asRead, turnBody } from "./turn.js";

const BATCH = 20; // turns that a dialog shows at a time

/** Shows only the turns after the fork, as a conversation. Left and right go from branch to branch (S0-38..S0-42). */
export function openBranches(node, forks, first = 0) {
  const line = state.line;
  let at = first;
  return openDialog(
    (close, dialog) => {
      const body = h("div", {
        class: "branch-turns",
        tabindex: "0",
        role: "group",
        "aria-label": "Turns of the branch",
      });
      const about = h("div", { class: "branch-about", "aria-live": "polite" });
      const foot = h("footer", { class: "dialog-foot" });
      const place = h("span", { class: "muted place" });
      const go = (step) => {
        at = (at + step + forks.length) % forks.length;
        draw();
      };
      const arrows = h(
        "div",
        { class: "arrows", role: "group", "aria-label": "Branches from this turn" },
        button("Previous branch", () => go(-1), {
          icon: "left",
          only: true,
          reason: forks.length < 2 ? "There is only one branch here." : "",
        }),
        place,
        button("Next branch", () => go(1), {
          icon: "right",
          only: true,
          reason: forks.length < 2 ? "There is only one branch here." : "",
        }),
      );
      const draw = () => {
        const branch = forks[at];
        const nodes = line.own(branch);
        const turns = nodes.filter((one) => one.turn !== null);
        place.textContent = `${at + 1} of ${forks.length}`;
        fill(
          about,
          h(
            "div",
            null,
            h("strong", null, h("bdi", null, visible(branch.label || branch.name))),
            branch.label !== branch.name && h("span", { class: "muted" }, ` ${visible(branch.name)}`),
            h("p", { class: "muted" }, turnsText(turns.length), " after the fork, last ", time(branch.ended_at)),
          ),
          graph(forks, at),
        );
        fill(body, null);
        body.scrollTop = 0;
        show(branch, nodes, 0);
        const reason = standstill();
        fill(
          foot,
          button("Compare with the current line", () => openComparison(state.tree.branch, branch.name), {
            kind: "quiet",
          }),
          button("Redo entire branch", () => redo(branch, null, close), { kind: "primary", reason }),
        );
      };
      const show = async (branch, nodes, from) => {
        const part = nodes.slice(from, from + BATCH);
        const waiting = h("p", { class: "muted" }, "Reading…");
        body.append(waiting);
        let known;
        try {
          known = await details(part.map((one) => one.commit));
        } catch (error) {
          waiting.remove();
          complain(error);
          return;
        }
        waiting.remove();
        if (forks[at] !== branch) return;
        part.forEach((one, number) => body.append(turnIn(branch, one, known[number], close)));
        if (from + BATCH < nodes.length) {
          const more = button(
            `Show more turns (${nodes.length - from - BATCH})`,
            () => {
              more.remove();
              show(branch, nodes, from + BATCH);
            },
            { kind: "quiet" },
          );
          body.append(more);
        }
      };
      dialog.addEventListener("keydown", (event) => {
        if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input, textarea, .diff-body"))
          return;
        if (document.querySelectorAll("dialog[open]").length > 1) return;
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (!step || forks.length < 2) return;
        event.preventDefault();
        go(step);
      });
      draw();
      const name = node.turn === null ? "the start" : `turn ${node.turn}`;
      return [dialogHead(`Branches from ${name}`, close), h("div", { class: "branch-bar" }, arrows, about), body, foot];
    },
    { kind: "wide branch-dialog" },
  );
}

function turnIn(branch, node, detail, close) {
  if (node.turn === null)
    return h("p", { class: "row edits in-dialog" }, `${asRead(detail?.files || []).length} files changed between turns`);
  return h(
    "article",
    { class: "turn in-dialog", dataset: { turn: node.turn }, "aria-label": `Turn ${node.turn}` },
    h(
      "header",
      { class: "turn-head" },
      h("h3", null, `Turn ${node.turn}`),
      h("span", { class: "who" }, visible(node.agent)),
      time(node.ended_at),
      h(
        "span",
        { class: "actions shown" },
        button("Redo to here", () => redo(branch, node, close), { kind: "small", reason: standstill() }),
      ),
    ),
    h("div", { class: "turn-body" }, turnBody(node, detail)),
  );
}

/** Confirmed like any move. The branch dialog closes when the move is done. */
async function redo(branch, node, close) {
  const whole = !node || node.commit === branch.commit;
  const done = await propose({ move: "switch", address: whole ? branch.name : `${branch.name}:${node.turn}` });
  if (done) close();
}

/** Draws the current line and the branches that fork off here. */
function graph(all, place) {
  const from = Math.max(0, Math.min(place - 4, all.length - 10));
  const forks = all.slice(from, from + 10); // more would be too small to see
  const at = place - from;
  const height = 18 + forks.length * 12;
  const lanes = forks.map((branch, number) => {
    const y = 16 + number * 12;
    const own = Math.min(branch.own_turns || 1, 8);
    const dots = [...Array(own)].map((_, dot) => svg("circle", { cx: 44 + dot * 11, cy: y, r: "3" }));
    return svg(
      "g",
      { class: number === at ? "lane chosen" : "lane" },
      svg("path", { d: `M18 6 C 26 6 26 ${y} 38 ${y} H ${40 + (own - 1) * 11}` }),
      dots,
    );
  });
  const title = svg("title", null, `${all.length} branches leave the current line here`);
  return svg(
    "svg",
    { class: "mini", viewBox: `0 0 140 ${height}`, width: "140", height, role: "img" },
    title,
    svg("path", { class: "now", d: "M4 6 H 134" }),
    svg("circle", { class: "point", cx: "18", cy: "6", r: "4" }),
    lanes,
  );
}
