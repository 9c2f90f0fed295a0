"""Addresses: the ways to name a node.

`5` turn 5 on the current line (`0` before the first) · `#12` by sequence number · `name` a branch or a checkpoint ·
`name:5` turn 5 on its line · `@` the cursor · a commit's hash or an unambiguous prefix · `heads/name` and `tags/name`
where a name is both · `session/name` and `session/name:5` in another session · an agent session's id or its first 8
characters, alone or with `:5`: the line that it speaks for.

An address is only compared with names and ids that exist. No address becomes a path, a ref name or an argument.
"""

from __future__ import annotations

from collections.abc import Iterable

from snapstore.errors import Unknown, Unsafe, did_you_mean, similar
from snapstore.git.ref_names import ARCHIVE, CURSORS, DELETED, HEADS, SAFETY, TAGS
from snapstore.store.state import check_name
from snapstore.timeline.history.agent_sessions import addressed, line_of
from snapstore.timeline.history.graph import Graph

SHORTEST_HASH = 4
_MOST_DIGITS = 9
_SEARCHED = (HEADS, TAGS, ARCHIVE, CURSORS, DELETED, SAFETY)  # refs of any session that a hash is searched below


def resolve(graph: Graph, address: str) -> bytes:
    """Return the commit of an address; raise Unknown if none or several match."""
    return locate(graph, address)[0]


def locate(graph: Graph, address: str) -> tuple[bytes, str | None]:
    """Return the commit, and the session's own branch if the address names one."""
    if address == "@":
        return graph.cursor, None
    if address.startswith("#") and _is_number(address[1:]):
        return _by_sequence(graph, int(address[1:])), None
    if _is_number(address):  # never a name: a branch with that name is `heads/5`
        found = _turn(graph, graph.tip, int(address)) or _by_hash(graph, address)
        if found is None:
            raise _no_turn(graph, graph.tip, int(address), address)
        return found, None
    # A full hash means that commit, even if somebody gave a branch that name.
    found = _by_hash(graph, address) if len(address) == 40 else None
    if found is not None:
        return found, None
    named = _named(graph, address)
    if named is not None:
        return named
    spoken = _by_agent_session(graph, address)
    found = _by_hash(graph, address)
    if spoken is not None and found is not None:
        raise Unknown(
            f"{address} is the beginning of a commit and of an agent session",
            "Give more of it.",
            address=_short(address),
        )
    if spoken is not None:
        return spoken
    if found is None:
        shown = _short(address)
        raise Unknown(f"there is no {shown!r} in session {graph.session}", _nearest(graph, address), address=shown)
    return found, None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS


# Numbers.


def _by_sequence(graph: Graph, number: int) -> bytes:
    ordered = graph.by_seq()
    matches = [node.oid for node in ordered if node.seq == number]
    found = matches[0] if matches else None
    if len(matches) > 1:  # machines number their nodes independently: prefer the only one of ours
        line = {node.oid for node in graph.upwards(graph.tip) if node.seq == number}
        ours = [oid for oid in matches if oid in line] or [oid for oid in matches if not _is_foreign(graph, oid)]
        if len(ours) != 1:
            shown = ", ".join(oid.hex()[:8] for oid in matches[:4])
            raise Unknown(
                f"#{number} is ambiguous: session {graph.session} has {len(matches)}, from different machines",
                f"Give one by its hash: {shown}.",
                address=f"#{number}",
            )
        found = ours[0]
    if found is None:
        raise Unknown(
            f"there is no #{number} in session {graph.session}",
            f"The last one is #{ordered[-1].seq}; `snapstore tree --all` shows them all.",
            address=f"#{number}",
        )
    return found


def _is_foreign(graph: Graph, oid: bytes) -> bool:
    branch = graph.branch_of(oid)
    return branch is not None and graph.owner_of(branch) is not None


def _turn(graph: Graph, tip: bytes, number: int) -> bytes | None:
    """Return a turn on the line that ends at a tip."""
    if number == 0:
        return _before_first(graph, tip)
    return next((node.oid for node in graph.upwards(tip) if node.turn == number), None)


def _before_first(graph: Graph, tip: bytes) -> bytes | None:
    """Return the node before the first turn: the baseline, or edits after it."""
    found: bytes | None = tip
    for node in graph.upwards(tip):
        if node.turn is not None:
            found = node.parent
    return found


# Names.


def _named(graph: Graph, address: str) -> tuple[bytes, str | None] | None:
    """Find a branch or checkpoint of any session, alone or with a turn on its line."""
    name, colon, number = address.rpartition(":")
    if not (colon and _is_number(number)):
        return _name(graph, address)
    found = _name(graph, name)
    if found is None:
        return None
    turn = _turn(graph, found[0], int(number))
    if turn is None:
        raise _no_turn(graph, found[0], int(number), address, f" on {name}")
    return turn, found[1]


def _name(graph: Graph, name: str) -> tuple[bytes, str | None] | None:
    found = _own(graph, name)
    if found is None and "/" in name:
        session, _, rest = name.partition("/")
        if session != graph.session and session in graph.store.sessions():
            other = _own(Graph(graph.store, session), rest)
            return other and (other[0], None)
        if session == graph.session:
            return _own(graph, rest)
    return found


def _own(graph: Graph, name: str) -> tuple[bytes, str | None] | None:
    """Find a name of the graph's own session; listed branches precede archived ones."""
    branch = graph.branches.get(name) or graph.archived.get(name)
    checkpoint = graph.checkpoints.get(name)
    if branch and checkpoint and branch != checkpoint:
        raise Unknown(
            f"{name!r} is both a branch and a checkpoint",
            f"Use `heads/{name}` for the branch or `tags/{name}` for the checkpoint.",
            address=name,
        )
    if branch:
        return branch, name
    if checkpoint:
        return checkpoint, None
    kind, _, rest = name.partition("/")
    if kind == "heads" and (branch := graph.branches.get(rest) or graph.archived.get(rest)):
        return branch, rest
    if kind == "tags" and (checkpoint := graph.checkpoints.get(rest)):
        return checkpoint, None
    return None


# Agent sessions.


def _by_agent_session(graph: Graph, address: str) -> tuple[bytes, str | None] | None:
    """Find the line of an agent session: its end, or one of its turns, and its branch."""
    name, colon, number = address.rpartition(":")
    if not (colon and _is_number(number)):
        name, number = address, ""
    try:
        known = addressed(graph.store, check_name(name))
    except Unsafe:
        return None
    if known is None:
        return None
    line = line_of(Graph(graph.store, known.session), known.id)
    branch = line.branch if known.session == graph.session else None
    if not number:
        return line.tip, branch
    turn = _turn(graph, line.tip, int(number))
    if turn is None:
        raise _no_turn(graph, line.tip, int(number), address, f" on {name}")
    return turn, branch


# Hashes.


def _by_hash(graph: Graph, prefix: str) -> bytes | None:
    """Find a commit of any session, or a saved state, by the start of its hash."""
    text = prefix.lower()
    if not SHORTEST_HASH <= len(text) <= 40 or not set(text) <= set("0123456789abcdef"):
        return None
    matches = sorted(oid for oid in _everything(graph) if oid.hex().startswith(text))
    if len(matches) > 1:
        shown = ", ".join(oid.hex()[: len(text) + 4] for oid in matches[:4])
        raise Unknown(
            f"{prefix} is the beginning of {len(matches)} commits", f"Give more digits: {shown}.", address=prefix
        )
    return matches[0] if matches else None


def _everything(graph: Graph) -> Iterable[bytes]:
    seen = set(graph.nodes)
    refs = graph.store.shadow.refs
    for prefix in _SEARCHED:
        for tip in refs.list(prefix).values():
            oid = graph.peel(tip) if tip not in seen else None
            while oid is not None and oid not in seen:
                seen.add(oid)
                oid = graph.node(oid).parent
    return seen


# Refusals.


def _no_turn(graph: Graph, tip: bytes, number: int, address: str, where: str = "") -> Unknown:
    last = graph.turn_of(tip)
    there = (
        "there are no turns yet" if last == 0 else "there is only turn 1" if last == 1 else f"the last is turn {last}"
    )
    hint = "`snapstore log` shows this line, `snapstore tree` all of them."
    return Unknown(f"there is no turn {number}{where or ' on this line'}: {there}", hint, address=_short(address))


def _nearest(graph: Graph, address: str) -> str:
    """Suggest similar names, or else the forms that an address can have."""
    names = [*graph.branches, *graph.archived, *graph.checkpoints]
    names += [f"{session}/" for session in graph.store.sessions() if session != graph.session]
    close = similar(address.partition(":")[0], names) if len(address) <= 60 else []
    forms = "`snapstore tree` shows turns, branches and checkpoints; a turn is `5`, `#12`, `branch:5`, `@` or a hash."
    return did_you_mean(close, "" if close else forms).rstrip()


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:60] + "…"
