"""Saving while a turn is open (S3-24): a turn is recorded at its end, and on a timer what it has named so far is saved.

Under a ref of its own, `refs/snapstore/progress/<session>`: the turn that it belongs to is not over, so it is no node
of the tree, and it goes when the turn is recorded. Only named files are looked at, whatever the size of the tree.
"""

from __future__ import annotations

import os

from snapstore.errors import SnapstoreError
from snapstore.git.objects import commits
from snapstore.git.objects.ids import COMMIT
from snapstore.git.objects.trees import letter
from snapstore.git.repository import SNAPSTORE
from snapstore.store.state import encode
from snapstore.timeline.capture.disk_snapshot import Capture

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.store.handle import StoreHandle
    from snapstore.store.journal import RefMove
    from snapstore.store.state import OpenTurn

KIND = "progress"
_PLACE = "refs/snapstore/progress/"


def save_if_due(store: StoreHandle, turn: OpenTurn) -> None:
    """Call under the lock. Never fails: the turn goes on, and its end records it all."""
    every = store.header.save_every
    if not every or store.clock() - max(turn.saved_at, turn.started_at) < every:
        return
    try:
        _save(store, turn)
    except (OSError, SnapstoreError) as error:
        store.log(f"the open turn of session {turn.session} could not be saved: {error}")


def forgotten(store: StoreHandle, turn: OpenTurn) -> list[RefMove]:
    """What goes with the end of a turn."""
    if not turn.saved_at:
        return []
    ref = _PLACE + turn.session
    held = store.shadow.refs.value(ref)
    return [(ref, held, None)] if held is not None else []


def _save(store: StoreHandle, turn: OpenTurn) -> None:
    shadow, ref = store.shadow, _PLACE + turn.session
    before = bytes.fromhex(turn.before)
    start = shadow.commit(before).tree
    capture = Capture(store)  # not the one that looked at the files just named: nothing of this is to be remembered
    writer = capture.writer
    try:
        states = capture.look([os.fsencode(name) for name in turn.named], start)
        tree = shadow.trees.rewrite(writer, start, states)
        changes = [(letter(change), change[0]) for change in shadow.trees.diff(start, tree)]
        text = commits.message(f"In progress: {turn.prompt}", changes, {"Kind": KIND, "Session": turn.session})
        seconds = max(0, int(store.clock()))
        commit = writer.add(COMMIT, commits.encode(tree, [before], store.user, SNAPSTORE, seconds, text))
        pack = shadow.objects.finish(writer)
    except BaseException:
        writer.abandon()
        raise
    turn.saved_at = store.clock()
    files: dict[str, bytes | None] = {f"open/{turn.session}.json": encode(turn)}
    moves: list[RefMove] = [(ref, shadow.refs.value(ref), commit)]
    store.journal.carry_out(moves, files, what=f"saving of a turn in session {turn.session}")
    shadow.objects.release(pack)
