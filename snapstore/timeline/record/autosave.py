"""Save the files that an open turn has named so far, at intervals (S3-24).

The saved commit has a ref of its own, `refs/snapstore/progress/<session>`. The turn is not over, so the commit is not a
node of the tree of turns, and the ref is removed when the turn is recorded. Only named files are read, so the cost does
not depend on the size of the tree.
"""

from __future__ import annotations

import os

from snapstore.errors import SnapstoreError
from snapstore.git.objects import commits
from snapstore.git.objects.ids import COMMIT
from snapstore.git.objects.trees import letter
from snapstore.git.ref_names import PROGRESS
from snapstore.git.repository import SNAPSTORE
from snapstore.store.handle import StoreHandle
from snapstore.store.journal import RefMove
from snapstore.store.state import OpenTurn, encode
from snapstore.timeline.capture.disk_snapshot import Capture

KIND = "progress"


def save_if_due(store: StoreHandle, turn: OpenTurn) -> None:
    """Save the open turn if the interval has passed; call under the lock.

    A failure is only logged: the turn continues, and its end records everything.
    """
    every = store.header.save_every
    if not every or store.clock() - max(turn.saved_at, turn.started_at) < every:
        return
    try:
        _save(store, turn)
    except (OSError, SnapstoreError) as error:
        store.log(f"the open turn of session {turn.session} could not be saved: {error}")


def drop_move(store: StoreHandle, turn: OpenTurn) -> list[RefMove]:
    """Return the ref move that removes the saved commit of a turn at its end.

    The commit of the turn, which is recorded in the same change, holds the files as they are now.
    """
    if not turn.saved_at:
        return []
    ref = PROGRESS + turn.session
    held = store.shadow.refs.value(ref)
    return [(ref, held, None)] if held is not None else []


def _save(store: StoreHandle, turn: OpenTurn) -> None:
    shadow, ref = store.shadow, PROGRESS + turn.session
    before = bytes.fromhex(turn.before)
    start = shadow.commit(before).tree
    capture = Capture(store)  # a separate one, because the stat cache must not remember these files
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
