// Where each node of a tree is drawn: one row a node in the order they were made, one lane a line of turns.

export function lanes(tree, line) {
  const nodes = tree.nodes;
  const row = new Map(nodes.map((node, at) => [node.commit, at]));
  const laneOf = new Map();
  const tracks = []; // {lane, from, first, last, branch}: from the row it leaves to its last
  const add = (path, branch, wanted) => {
    if (!path.length) return;
    const first = row.get(path[0].commit);
    const last = row.get(path[path.length - 1].commit);
    const from = path[0].parent !== null && row.has(path[0].parent) ? row.get(path[0].parent) : first;
    const lane = wanted ?? freeLane(tracks, from, last);
    for (const node of path) laneOf.set(node.commit, lane);
    const parent = from === first ? lane : (laneOf.get(path[0].parent) ?? lane);
    tracks.push({ lane, from, first, last, parent, branch });
  };
  add(line.nodes, tree.branch, 0);
  const others = tree.branches.filter((branch) => branch.name !== tree.branch);
  others.sort((a, b) => (row.get(a.commit) ?? 0) - (row.get(b.commit) ?? 0));
  const climb = (commit, branch) => {
    const path = [];
    for (let at = row.get(commit); at !== undefined && !laneOf.has(nodes[at].commit); at = row.get(nodes[at].parent))
      path.push(nodes[at]);
    add(path.reverse(), branch);
  };
  for (const branch of others) climb(branch.commit, branch.name);
  // What only a checkpoint holds belongs to no branch.
  for (let at = nodes.length - 1; at >= 0; at -= 1)
    if (!laneOf.has(nodes[at].commit)) climb(nodes[at].commit, nodes[at].branch);
  return { nodes, row, laneOf, tracks, width: Math.max(...tracks.map((track) => track.lane), 0) + 1 };
}

/** The leftmost lane beside the current line that nobody uses in these rows. */
function freeLane(tracks, from, last) {
  const taken = new Set(tracks.filter((track) => track.from <= last && from <= track.last).map((track) => track.lane));
  let lane = 1;
  while (taken.has(lane)) lane += 1;
  return lane;
}
