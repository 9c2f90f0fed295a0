"""Replace old commit ids in records, conversations and operations after a rewrite.

Only the store's own documents are read. A commit that was dropped is replaced by its parent, and in a conversation by
the turn before it.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from typing import Any

from snapstore.errors import Corrupt
from snapstore.git.branch_descriptions import title_of
from snapstore.git.maintenance.rewrite import Rewrite
from snapstore.git.objects import notes as gitnotes
from snapstore.git.objects.ids import BLOB, COMMIT, EMPTY_TREE, FILE, Entry
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.ref_names import CURSORS, NOTES, branch_ref
from snapstore.store import branch_titles
from snapstore.store.conversations import Conversations
from snapstore.store.handle import StoreHandle
from snapstore.store.journal import RefMove
from snapstore.store.state import encode
from snapstore.timeline.forget.drop import DropTurn
from snapstore.timeline.history import raw_lines
from snapstore.timeline.history.operations import Operation, Operations
from snapstore.timeline.record.redact import Redactor

_KEY = re.compile(rb"[0-9a-f]{40}").fullmatch
_ID = re.compile(r"[0-9a-f]{40}").fullmatch


class Remapping:
    """Applies one change of commit ids to everything outside of history.

    `scrub` redacts texts, `is_forgotten` tells which paths are being forgotten, and `drop_turn` is set if a turn is.
    """

    def __init__(
        self,
        store: StoreHandle,
        *,
        scrub: Redactor | None = None,
        is_forgotten: Callable[[bytes], bool] | None = None,
        drop_turn: DropTurn | None = None,
    ) -> None:
        self._store = store
        self._shadow = store.shadow
        self._scrub = scrub
        self._is_forgotten = is_forgotten
        self._drop_turn = drop_turn
        self._new: dict[bytes, bytes] = {}
        self._dropped: set[bytes] = set()
        self._lines: dict[bytes, bytes] = {}  # the redacted raw lines per commit

    def learn(self, new: dict[bytes, bytes], dropped: set[bytes]) -> None:
        self._new = new
        self._dropped = dropped

    # Records.

    def notes(self, writer: PackWriter) -> tuple[int, list[RefMove]]:
        """Rewrite all notes; return the number of changed records, and the ref moves.

        The moves cover the refs of records and raw lines, and notes that users made with git.
        """
        refs, shadow = self._shadow.refs, self._shadow
        tips = {ref: refs.read(ref) for ref in gitnotes.REFS}
        trees = {ref: shadow.commit(tip).tree if tip is not None else EMPTY_TREE for ref, tip in tips.items()}
        seconds = max(0, int(self._store.clock()))
        moves: list[RefMove] = []
        total = 0
        # Records come first: lines are redacted together with their record, because the tool call in the record may
        # show which file a line is about.
        for ref, old in tips.items():
            if old is not None:
                lines = trees[gitnotes.TRANSCRIPTS] if ref == gitnotes.REF else None
                made, changed = self._notes(writer, trees[ref], lines)
                total += changed if ref == gitnotes.REF else 0
                # Always a new commit, even for an unchanged tree: the old one's ancestors may have forgotten content.
                new = shadow.notes_commit(writer, made, seconds)
                moves += [(ref, old, new)] if new != old else []
        return total, [*moves, *self._other_notes(writer)]

    def _notes(self, writer: PackWriter, tree: bytes, transcripts: bytes | None) -> tuple[bytes, int]:
        """Rewrite a notes tree under the new commit ids.

        `transcripts` is the tree with the raw lines of these records, or None if `tree` itself holds raw lines.
        """
        entries: dict[bytes, Entry | None] = {}
        changed = 0
        same = True
        for path, entry in self._shadow.trees.walk(tree):
            key = path.replace(b"/", b"")
            if not _KEY(key):
                entries[path] = entry
                continue
            commit = bytes.fromhex(key.decode())
            if commit in self._dropped:
                changed += 1
                continue
            if transcripts is not None:
                blob = self._record(writer, commit, entry[1], transcripts)
            else:
                blob = self._lines.get(commit) or self._transcript(writer, entry[1])
            changed += blob != entry[1]
            new = self._new.get(commit, commit)
            same = same and new == commit
            name = new.hex().encode()
            entries[b"%s/%s" % (name[:2], name[2:])] = (FILE, blob)
        if same and not changed:
            return tree, 0
        return self._shadow.trees.rewrite(writer, EMPTY_TREE, entries), changed

    def _other_notes(self, writer: PackWriter) -> list[RefMove]:
        """Rewrite notes that users made with git, with their history."""
        refs = self._shadow.refs
        moves: list[RefMove] = []
        rewrite = Rewrite(self._shadow, writer, _NotesChange(self, writer))
        for name in refs.list(NOTES):
            old = refs.value(name)
            if name not in gitnotes.REFS and isinstance(old, bytes) and self._shadow.objects.header(old)[0] == COMMIT:
                rewrite.commits([old])
                if rewrite.new[old] != old:
                    moves.append((name, old, rewrite.new[old]))
        return moves

    def _record(self, writer: PackWriter, commit: bytes, blob: bytes, transcripts: bytes | None = None) -> bytes:
        objects = self._shadow.objects
        data = objects.read_kind(blob, BLOB)
        try:
            record = json.loads(data)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            return blob if self._scrub is None or (plain := self._plain(data)) == data else writer.add(BLOB, plain)
        made = record
        if self._scrub is not None:
            found = gitnotes.find(self._shadow.trees, transcripts, commit) if transcripts is not None else None
            lines = objects.read_kind(found, BLOB) if found is not None else None
            if not lines:
                made = self._scrub.record(record, data)
            else:
                made, self._lines[commit] = self._scrubbed(writer, raw_lines.put_back(record, lines))
        drop_turn = self._drop_turn
        if drop_turn is not None and drop_turn.distance(commit):
            made = self._reworded(drop_turn, commit, made)
        made = {key: self._id(value) if isinstance(value, str) else value for key, value in made.items()}
        if drop_turn is not None and drop_turn.comes_after(commit):
            made["turn"] = self._number(made.get("turn"))
        return blob if made == record else writer.add(BLOB, json.dumps(made).encode())

    def _scrubbed(self, writer: PackWriter, record: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        """Redact a record with its lines; return the record without lines, and a blob."""
        assert self._scrub is not None
        made = self._scrub.record(record, json.dumps(record).encode())
        ends = any(line.endswith("\n") for line in record[raw_lines.LINES])
        # A redacted line may have lost its newline, and the last line of a text may never have had one.
        lines = [line if not ends or line.endswith("\n") else f"{line}\n" for line in made[raw_lines.LINES]]
        rest, text = raw_lines.take_out({**made, raw_lines.LINES: lines})
        assert text is not None
        return rest, writer.add(BLOB, text)

    def _transcript(self, writer: PackWriter, blob: bytes) -> bytes:
        """Redact raw lines whose record was removed by hand."""
        if self._scrub is None:
            return blob
        text = self._shadow.objects.read_kind(blob, BLOB)
        record = raw_lines.put_back({}, text)
        return self._scrubbed(writer, record)[1] if record[raw_lines.LINES] else blob

    def _reworded(self, drop_turn: DropTurn, commit: bytes, record: dict[str, Any]) -> dict[str, Any]:
        made = {key: value for key, value in record.items() if key != "of" or drop_turn.distance(commit) != 1}
        if isinstance(made.get("prompt"), str):
            made["prompt"] = drop_turn.reworded(commit, made["prompt"])
        return made

    def _plain(self, data: bytes) -> bytes:
        if self._scrub is None:
            return data
        return self._scrub.message(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _number(self, turn: Any) -> Any:
        """Return the turn number after one earlier turn was dropped."""
        lost = self._drop_turn.number if self._drop_turn is not None else None
        return turn - 1 if isinstance(turn, int) and lost is not None and turn > lost else turn

    # Refs.

    def cursors(self, moves: list[RefMove]) -> list[RefMove]:
        """Return moves that attach cursors to their branch if they are at its new tip.

        Each replaces the cursor's own move in `moves`.
        """
        refs = self._shadow.refs
        more: list[RefMove] = []
        after = {name: new for name, _, new in moves}
        for name in refs.list(CURSORS):
            old = refs.value(name)
            if not isinstance(old, bytes):
                continue
            session = name.rpartition("/")[2]
            new = after.get(name, old)
            state = self._store.documents.session(session)
            branch = branch_ref(session, state.branch) if state is not None else ""
            before = refs.value(branch) if branch else None
            tip = after.get(branch, before)
            if tip == new and tip != before and branch not in self._store.foreign().refs:
                moves[:] = [move for move in moves if move[0] != name]
                more.append((name, old, branch))
        return more

    # Documents.

    def files(self) -> dict[str, bytes | None]:
        """Return the state files that change; caches of commits are removed."""
        files: dict[str, bytes | None] = {}
        names = sorted(os.listdir(self._store.state))
        files |= dict.fromkeys(name for name in names if name.startswith("graph-"))
        files |= {f"open/{name}.json": None for name in self._store.documents.sessions_with_open_turns()}
        files |= self._conversations()
        files |= self._operations()
        files |= branch_titles.redacted(self._store.shadow, self._description())
        return files

    def _description(self) -> Callable[[str], str | None]:
        """Return a function that changes a branch's description.

        The function returns None for a description that is the prompt of a forgotten turn.
        """
        dropped = {title_of(prompt) for prompt in self._dropped_prompts()} if self._drop_turn is not None else set()

        def change(text: str) -> str | None:
            if title_of(text) in dropped:
                return None
            return self._scrub.message(text) if self._scrub is not None else text

        return change

    def _conversations(self) -> dict[str, bytes | None]:
        conversations = Conversations(self._store)
        files: dict[str, bytes | None] = {}
        for name in _json_files(f"{self._store.state}/conversations"):
            state = conversations.state(name)
            if state is not None:
                before = encode(state)
                state.at = self._turn(state.at)
                state.left = {id: self._turn(at) for id, at in state.left.items()}
                strays = {id: [self._turn(at) for at in ends] for id, ends in state.strays.items()}
                state.strays = {id: [at for at in ends if at] for id, ends in strays.items()}
                if state.awaiting is not None:
                    state.awaiting = self._mapped(state.awaiting)
                    if isinstance(state.awaiting.get("title"), str):
                        state.awaiting["title"] = self._title(state.awaiting["title"])
                if encode(state) != before:
                    files |= conversations.state_file(state)
        for known in conversations.agent_sessions():
            before = encode(known)
            if known.fork_commit:
                commit = bytes.fromhex(known.fork_commit)
                if self._drop_turn is not None and (commit in self._dropped or self._drop_turn.comes_after(commit)):
                    lost = self._drop_turn.number
                    if known.fork_turn is not None and lost is not None and known.fork_turn >= lost:
                        known.fork_turn -= 1
                known.fork_commit = self._turn(known.fork_commit) or None
            known.title = self._title(known.title)
            if encode(known) != before:
                files |= conversations.agent_session_file(known)
        return files

    def _title(self, title: str | None) -> str | None:
        """Redact a conversation's title, which is often its first prompt."""
        if title and self._scrub is not None:
            title = self._scrub.message(title)
        return None if title and self._drop_turn is not None and title in self._dropped_prompts() else title

    def _dropped_prompts(self) -> set[str]:
        found: set[str] = set()
        for oid in self._dropped:
            found.add(self._shadow.commit(oid).subject)
            note = self._shadow.note(oid)
            try:
                record = json.loads(note) if note is not None else {}
            except ValueError:
                continue
            found.add(str(record.get("prompt", "")) if isinstance(record, dict) else "")
        return found

    def _operations(self) -> dict[str, bytes | None]:
        files: dict[str, bytes | None] = {}
        for operation in Operations(self._store).newest_first():
            before = operation.document()[1]
            self._operation(operation)
            name, after = operation.document()
            if after != before:
                files[name] = after
        return files

    def _operation(self, operation: Operation) -> None:
        ends = (operation.from_, operation.to)
        lost = self._drop_turn is not None and any(end and self._is_lost(str(end.get("commit"))) for end in ends)
        made = str((operation.to or {}).get("commit"))
        if self._drop_turn is not None and operation.kind in ("revert", "apply", "restore") and _ID(made):
            operation.what = self._drop_turn.reworded(bytes.fromhex(made), operation.what)
        operation.from_, operation.to = self._mapped(operation.from_), self._mapped(operation.to)
        operation.arguments = [self._mapped(word) for word in operation.arguments]
        if self._scrub is not None:
            operation.what = self._scrub.message(operation.what)
            operation.arguments = [self._scrub.message(word) for word in operation.arguments]
        operation.refs = [
            (name, *(self._new.get(value, value) if isinstance(value, bytes) else value for value in (old, new)))  # type: ignore[misc]
            for name, old, new in operation.refs
        ]
        is_forgotten = self._is_forgotten
        if is_forgotten is not None:
            operation.files = [step for step in operation.files if not is_forgotten(step[0])]
        if lost:  # the operation moved to or from the forgotten turn, so its file changes cannot be undone
            operation.files = [step for step in operation.files if not self._was_changed(step[0])]

    def _is_lost(self, commit: str) -> bool:
        return bool(_ID(commit)) and bytes.fromhex(commit) in self._dropped

    def _was_changed(self, path: bytes) -> bool:
        return self._drop_turn is not None and path in self._drop_turn.old

    def _mapped(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._id(value)
        if isinstance(value, dict):
            return {key: self._mapped(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self._mapped(one) for one in value]
        return value

    def _id(self, text: str) -> str:
        if len(text) == 40 and _ID(text):
            return self._new.get(bytes.fromhex(text), bytes.fromhex(text)).hex()
        return text

    def _turn(self, text: str) -> str:
        """Return the new id of a conversation's turn; for a dropped turn, of the one before."""
        if not text or not _ID(text):
            return text
        oid: bytes | None = bytes.fromhex(text)
        try:
            while oid is not None and oid in self._dropped | self._skipped(oid, text):
                parents = self._shadow.commit(oid).parents
                oid = parents[0] if parents else None
        except Corrupt:
            return text
        return "" if oid is None else self._new.get(oid, oid).hex()

    def _skipped(self, oid: bytes, text: str) -> set[bytes]:
        """Return `{oid}` if the search for the turn before a dropped one must skip this node.

        Nodes that are not turns are skipped.
        """
        is_turn = self._shadow.commit(oid).trailers.get("Kind") == "turn"
        return set() if is_turn or oid.hex() == text else {oid}


class _NotesChange:
    """The change that `git.maintenance.rewrite` makes to a commit of notes."""

    def __init__(self, remapping: Remapping, writer: PackWriter) -> None:
        self._remapping = remapping
        self._writer = writer

    def drops(self, commit: bytes) -> bool:
        return False

    def tree(self, commit: bytes, tree: bytes, parents: tuple[bytes, ...]) -> bytes:
        return self._remapping._notes(self._writer, tree, EMPTY_TREE)[0]

    def message(self, commit: bytes, text: bytes) -> bytes:
        return self._remapping._plain(text)


def _json_files(folder: str) -> list[str]:
    try:
        return sorted(name[:-5] for name in os.listdir(folder) if name.endswith(".json"))
    except FileNotFoundError:
        return []
