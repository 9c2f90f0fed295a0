// The current line of a tree: its rows, its undone part, and the branches that fork off.

export class Line {
  constructor(tree) {
    this.tree = tree;
    this.byCommit = new Map(tree.nodes.map((node) => [node.commit, node]));
    const branch = tree.branches.find((one) => one.name === tree.branch);
    let nodes = this.upTo(tree.tip || branch?.commit || tree.cursor);
    let at = nodes.findIndex((node) => node.commit === tree.cursor);
    if (at < 0) {
      nodes = this.upTo(tree.cursor);
      at = nodes.length - 1;
    }
    this.nodes = nodes;
    this.at = at; // the index of the cursor
    this.index = new Map(nodes.map((node, index) => [node.commit, index]));
    this.undone = nodes.slice(at + 1).filter((node) => node.turn !== null);
    this.forks = this._forks();
  }

  /** Returns the nodes from the start to a commit. */
  upTo(commit) {
    const found = [];
    for (let node = this.byCommit.get(commit); node; node = this.byCommit.get(node.parent)) found.push(node);
    return found.reverse();
  }

  isUndone(commit) {
    const index = this.index.get(commit);
    return index !== undefined && index > this.at;
  }

  /** The number of the turn at the cursor; `last` is the number of the last turn. */
  get turn() {
    return this._turnAt(this.at);
  }

  get last() {
    return this._turnAt(this.nodes.length - 1);
  }

  _turnAt(index) {
    for (let at = index; at >= 0; at -= 1) if (this.nodes[at].turn !== null) return this.nodes[at].turn;
    return 0;
  }

  /** Returns the turn (or the start) that a node of the line belongs to. Edits belong to the turn before them. */
  anchor(commit) {
    for (let at = this.index.get(commit) ?? -1; at >= 0; at -= 1) {
      const node = this.nodes[at];
      if (node.turn !== null || at === 0) return node;
    }
    return null;
  }

  /** Returns where each other branch leaves this line: commit of the turn -> branches, with their own nodes. */
  _forks() {
    const found = new Map();
    const met = new Map(); // commit off the line -> the node of the line that it descends from
    for (const branch of this.tree.branches) {
      if (branch.name === this.tree.branch || branch.state === "archived" || this.index.has(branch.commit)) continue;
      const climbed = [];
      let node = this.byCommit.get(branch.commit);
      while (node && !this.index.has(node.commit) && !met.has(node.commit)) {
        climbed.push(node.commit);
        node = this.byCommit.get(node.parent);
      }
      if (!node) continue;
      const meeting = met.get(node.commit) || node.commit;
      for (const commit of climbed) met.set(commit, meeting);
      const anchor = this.anchor(meeting);
      if (!found.has(anchor.commit)) found.set(anchor.commit, []);
      found.get(anchor.commit).push(branch);
    }
    return found;
  }

  /** Returns the nodes that only a branch has. */
  own(branch) {
    return this.upTo(branch.commit).filter((node) => !this.index.has(node.commit));
  }
}
