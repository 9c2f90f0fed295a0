"""Split a plan into hunks, and narrow it to some of them.

A hunk is one run of changed lines between what is on disk and what the plan would write. Only moves that add a node can
be narrowed: a session cannot stand on half a turn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import xxhash

from snapstore.errors import Conflict, Usage
from snapstore.git.diff.patch import CONTEXT, LARGEST, blocks, is_binary, lines_of
from snapstore.git.objects.ids import BLOB, LINK, object_id
from snapstore.timeline.moves.plan import SKIPPED, WRITE, Found, PathMove, Plan, state_text
from snapstore.timeline.record.session import RecordingSession

_DIGITS = 12  # of an id


@dataclass(frozen=True, slots=True)
class Block:
    """Lines `start` to `end` of the file on disk, and the lines that replace them."""

    start: int
    end: int
    lines: tuple[bytes, ...]
    id: str = ""


@dataclass(frozen=True, slots=True)
class Hunk:
    """Neighbouring changes of one file, with some lines around them.

    A change without lines has no blocks: a file that is created or removed, a link, a mode, content that is not text.
    It is taken whole or not at all.
    """

    id: str
    path: bytes
    move: PathMove
    old: tuple[bytes, ...]  # the lines of the file on disk
    blocks: tuple[Block, ...] = ()

    @property
    def start(self) -> int:
        return max(self.blocks[0].start - CONTEXT, 0)

    @property
    def end(self) -> int:
        return min(self.blocks[-1].end + CONTEXT, len(self.old))

    def patch(self) -> list[bytes]:
        """Return the lines of the hunk, each with its sign, without line feeds."""
        if not self.blocks:
            return []
        lines: list[bytes] = []
        at = self.start
        for block in self.blocks:
            lines += (b" " + line for line in self.old[at : block.start])
            lines += (b"-" + line for line in self.old[block.start : block.end])
            lines += (b"+" + line for line in block.lines)
            at = block.end
        return [*lines, *(b" " + line for line in self.old[at : self.end])]

    def split(self) -> list[Hunk]:
        """Return one hunk per block."""
        if len(self.blocks) < 2:
            return [self]
        return [replace(self, id=block.id, blocks=(block,)) for block in self.blocks]

    def without_changes(self) -> Hunk:
        """Return the hunk with nothing left to do."""
        return replace(self, blocks=())

    def edited(self, patch: list[bytes]) -> Hunk:
        """Return the hunk as a person rewrote its patch; only added lines may differ.

        A line without a sign is a context line whose blank an editor removed.
        """
        lines = [line if line else b" " for line in patch if not line.startswith(b"#")]
        kept = [line[1:] for line in lines if line[:1] in (b" ", b"-")]
        before = [line.removesuffix(b"\n") for line in self.old[self.start : self.end]]
        if any(line[:1] not in (b" ", b"-", b"+") for line in lines) or kept != before:
            raise Usage("the edited hunk does not apply", "Change only lines with `+`, or turn a `-` into a blank.")
        new = tuple(line[1:] for line in lines if line[:1] in (b" ", b"+"))
        return replace(self, blocks=(Block(self.start, self.end, new),))


def hunks_of(session: RecordingSession, plan: Plan) -> list[Hunk]:
    """Return the hunks of every file that a plan changes, in the order of the files."""
    return [hunk for move in plan.changing for hunk in _of_file(session, move)]


def keep_only(session: RecordingSession, plan: Plan, chosen: Collection[str | Hunk]) -> Plan:
    """Narrow a plan to some of its hunks, given by id or as edited by a person.

    An id that the plan does not have is refused: the file has changed since the id was read.
    """
    if plan.new_node is None and not plan.nothing_to_do:
        raise Usage(f"{plan.kind} cannot be carried out in part", "Use revert, apply or restore for single hunks.")
    edits = {hunk.id: hunk for hunk in chosen if isinstance(hunk, Hunk)}
    ids = {hunk if isinstance(hunk, str) else hunk.id for hunk in chosen}
    partial = False
    for move in plan.changing:
        used, complete = _narrow(move, _of_file(session, move), ids, edits)
        ids -= used
        partial |= not complete
    if ids:
        raise Conflict(
            f"there is no hunk {min(ids)}",
            "Nothing was written. The files have changed since; look at the hunks again.",
            stale=True,
        )
    if not plan.changing and not plan.conflicts:
        plan.new_node = None
        plan.turn = plan.turn_before
    elif plan.new_node is not None and partial:
        verb, _, rest = plan.new_node.subject.partition(" ")
        plan.new_node.subject = f"{verb} part of {rest}"
    return plan


def _narrow(move: PathMove, hunks: list[Hunk], ids: set[str], edits: Mapping[str, Hunk]) -> tuple[set[str], bool]:
    """Narrow one file's change to the chosen hunks.

    Return the ids that belong to this file, and whether its whole change was chosen.
    """
    used: set[str] = set()
    blocks: list[Block] = []
    complete = True
    for hunk in hunks:
        parts = [hunk] if hunk.id in ids else hunk.split()
        taken = [part for part in parts if part.id in ids]
        used.update(part.id for part in taken)
        blocks += (block for part in taken for block in edits.get(part.id, part).blocks)
        complete &= len(taken) == len(parts) and all(edits.get(part.id, part).blocks == part.blocks for part in taken)
    if complete:
        return used, True
    if not blocks:
        move.action, move.result, move.merged, move.settled = SKIPPED, move.found, None, ""
        return used, False
    data = _apply(hunks[0].old, blocks)
    found, wanted = move.found, move.result
    entry = wanted if isinstance(wanted, tuple) else found
    assert isinstance(entry, tuple)
    move.merged, move.result, move.action = data, (entry[0], object_id(BLOB, data)), WRITE
    return used, False


def _apply(old: tuple[bytes, ...], blocks: list[Block]) -> bytes:
    lines: list[bytes] = []
    at = 0
    for block in sorted(blocks, key=lambda block: block.start):
        lines += [*old[at : block.start], *block.lines]
        at = block.end
    lines += old[at:]
    # A last line without a line feed is spelled with one (see `lines_of`); it may have become a middle line.
    ends = [line.removesuffix(b"\n") if number < len(lines) else line for number, line in enumerate(lines, 1)]
    if ends and ends[-1].endswith(b"\n"):
        return b"\n".join(ends).removesuffix(b"\n")
    return b"".join(line + b"\n" for line in ends)


def _of_file(session: RecordingSession, move: PathMove) -> list[Hunk]:
    texts = [_text(session, move, state) for state in (move.found, move.result)]
    old, new = (() if text is None else tuple(lines_of(text)) for text in texts)
    around: list[list[Block]] = []
    met: Counter[str] = Counter()
    for a1, a2, b1, b2 in blocks(old, new) if None not in texts and move.action == WRITE else ():
        name = _name(move.path, *old[a1:a2], b"\0", *new[b1:b2])
        met[name] += 1
        block = Block(a1, a2, new[b1:b2], name if met[name] == 1 else f"{name}-{met[name]}")
        if around and a1 - around[-1][-1].end <= 2 * CONTEXT:
            around[-1].append(block)
        else:
            around.append([block])
    if not around:
        return [
            Hunk(
                _name(move.path, state_text(move.found).encode(), state_text(move.result).encode()),
                move.path,
                move,
                old,
            )
        ]
    return [Hunk(_joined([block.id for block in group]), move.path, move, old, tuple(group)) for group in around]


def _name(*parts: bytes) -> str:
    """Name a change by its content, so that an id says what the person saw."""
    digest = xxhash.xxh3_64()
    for part in parts:
        digest.update(b"%d:" % len(part) + part)
    return digest.hexdigest()[:_DIGITS]


def _joined(ids: list[str]) -> str:
    return ids[0] if len(ids) == 1 else _name(*(one.encode() for one in ids))


def _text(session: RecordingSession, move: PathMove, state: Found) -> bytes | None:
    """Return the text of a state of the file, or None if it has none that can be shown line by line."""
    if not isinstance(state, tuple) or state[0] == LINK:
        return None
    objects = session.store.shadow.objects
    data: bytes | None
    if state == move.result and move.merged is not None:
        data = move.merged
    elif objects.contains(state[1], fresh=False):
        data = objects.read(state[1])[1] if objects.header(state[1])[1] <= LARGEST else None
    else:
        data = session.store.writer("look", []).read(move.path, LARGEST + 1)
    return None if data is None or len(data) > LARGEST or is_binary(data) else data
