// Layout of the tree: one row per node in the order of creation, one lane per line of turns.

const MANY = 3; // if this many lines fork off at one node, they share a lane until each of them begins

export function lanes(tree, line) {
  const nodes = tree.nodes;
  const row = new Map(nodes.map((node, at) => [node.commit, at]));
  const paths = pathsOf(tree, line, row);
  const leaving = new Map(); // node -> the first rows of the lines that fork off there
  for (const { path } of paths) {
    const from = path[0].parent;
    if (row.has(from)) leaving.set(from, [...(leaving.get(from) || []), row.get(path[0].commit)]);
  }
  const laneOf = new Map();
  const shared = new Map(); // node -> the lane that the lines forking off there share
  const tracks = []; // {lane, from, first, last, parent, branch}: `from` is the row of the fork
  for (const { path, branch } of paths) {
    const origin = path[0].parent;
    const first = row.get(path[0].commit);
    const last = row.get(path[path.length - 1].commit);
    const branched = row.get(origin) ?? first;
    const firsts = leaving.get(origin) || [];
    if (firsts.length >= MANY && !shared.has(origin)) {
      const end = Math.max(...firsts) - 1;
      const lane = freeLane(tracks, branched, end);
      shared.set(origin, lane);
      tracks.push({ lane, from: branched, first: branched + 1, last: end, parent: laneOf.get(origin), branch });
    }
    const apart = shared.has(origin) && first - branched > 1;
    const from = apart ? first - 1 : branched;
    const parent = apart ? shared.get(origin) : laneOf.get(origin);
    const lane = laneOf.size ? freeLane(tracks, apart ? first : from, last) : 0;
    for (const node of path) laneOf.set(node.commit, lane);
    tracks.push({ lane, from, first, last, parent: parent ?? lane, branch });
  }
  return { nodes, row, laneOf, tracks, width: Math.max(...tracks.map((track) => track.lane), 0) + 1 };
}

/** Returns the lines of turns: the current one, then each branch from where it leaves the lines before it. */
function pathsOf(tree, line, row) {
  const paths = [];
  const laid = new Set();
  const add = (path, branch) => {
    if (!path.length) return;
    for (const node of path) laid.add(node.commit);
    paths.push({ path, branch });
  };
  const climb = (commit, branch) => {
    const path = [];
    for (let at = row.get(commit); at !== undefined && !laid.has(tree.nodes[at].commit); at = row.get(path.at(-1).parent))
      path.push(tree.nodes[at]);
    add(path.reverse(), branch);
  };
  add(line.nodes, tree.branch);
  const others = tree.branches.filter((branch) => branch.name !== tree.branch);
  others.sort((a, b) => (row.get(a.commit) ?? 0) - (row.get(b.commit) ?? 0));
  for (const branch of others) climb(branch.commit, branch.name);
  // A node that only a checkpoint holds belongs to no branch.
  for (let at = tree.nodes.length - 1; at >= 0; at -= 1) climb(tree.nodes[at].commit, tree.nodes[at].branch);
  return paths;
}

/** Returns the leftmost lane beside the current line that is unused in these rows. */
function freeLane(tracks, from, last) {
  const taken = new Set(tracks.filter((track) => track.from <= last && from <= track.last).map((track) => track.lane));
  let lane = 1;
  while (taken.has(lane)) lane += 1;
  return lane;
}
