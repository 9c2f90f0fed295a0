"""List and change one session's branches and checkpoints.

Every change renames refs and is one journal entry together with its operation record, so `ops undo` can reverse it. No
node becomes unreachable: a deleted ref moves to `refs/snapstore/deleted/<session>/<operation>/…`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from snapstore.base.text import timestamp
from snapstore.errors import Conflict, Unknown, Unsafe, Usage, did_you_mean, similar
from snapstore.git.ref_names import DELETED, MAIN
from snapstore.git.refs import classify_moves
from snapstore.store.state import SessionState, check_name, encode, reads_as_address
from snapstore.timeline.history.branch import ARCHIVED, CURRENT, LISTED, Branch
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.nodes import highest_seq
from snapstore.timeline.history.operations import Operation, Operations, RefMove
from snapstore.timeline.moves.ref_changes import RefChanges, Rename
from snapstore.timeline.record.session import RecordingSession

Listing = list[Branch]
Moves = list[RefMove]


class Branches:
    """Lists and changes a session's branches and checkpoints.

    Every change returns its `Operation`.
    """

    def __init__(self, session: RecordingSession) -> None:
        self._store = session.store
        self._session = session.name
        self._refs = session.store.shadow.refs

    def list(self, graph: Graph | None = None, *, archived: bool = True) -> Listing:
        """Return branches: the current one, listed ones by last use, archived ones.

        The current branch comes first even if it is archived. `graph` is a view of the session's tree, if not its own.
        """
        graph = graph or self._graph()
        groups = [(graph.branches, LISTED), (graph.archived, ARCHIVED)]
        found = [
            Branch(graph, name, tip, CURRENT if name == graph.branch else state)
            for group, state in groups
            for name, tip in group.items()
            if archived or state == LISTED or name == graph.branch
        ]
        order = (CURRENT, LISTED, ARCHIVED)
        return sorted(found, key=lambda branch: (order.index(branch.state), -branch.seq))

    def named(self, names: Iterable[str]) -> Listing:
        """Return branches by name, to be deleted; refuse if one cannot be deleted."""
        graph = self._graph()
        for name in names:
            self._own(graph, name, "deleted")
            self._refuse_current(graph, name, "deleted")
        wanted = set(names)
        return [branch for branch in self.list() if branch.name in wanted]

    # Changes.

    def rename(self, old: str, new: str) -> Operation:
        def change(graph: Graph, number: int) -> tuple[str, Iterable[Rename]]:
            ref = self._own(graph, old, "renamed")
            self._refuse_taken(new)
            return f"rename of branch {old} to {new}", [(ref, ref[: -len(old)] + new)]

        check_own_name(new, "branch")
        return self._change("branch rename", [old, new], change)

    def delete(self, name: str) -> Operation:
        return self.delete_all([name])

    def delete_all(self, names: Iterable[str], *, tips: Mapping[str, bytes] | None = None) -> Operation:
        """Delete branches from every list, in one operation.

        The nodes stay, and `ops undo` brings the branches back. With `tips`, refuse if a branch no longer ends where
        the user saw it.
        """
        wanted = list(dict.fromkeys(names))

        def change(graph: Graph, number: int) -> tuple[str, Iterable[Rename]]:
            refs = [self._own(graph, name, "deleted") for name in wanted]
            for name, ref in zip(wanted, refs, strict=True):
                self._refuse_current(graph, name, "deleted")
                if tips is not None and self._refs.read(ref) != tips.get(name):
                    raise Conflict(
                        f"branch {name} has moved since you looked", "Nothing was deleted. Run the command again."
                    )
            gone = [f"{self._place('snapstore/deleted', str(number))}/{name}" for name in wanted]
            what = f"delete of branch {wanted[0]}" if len(wanted) == 1 else f"delete of {len(wanted)} branches"
            return what, zip(refs, gone, strict=True)

        if not wanted:
            raise Usage("no branch to delete", "`snapstore branches` lists them.")
        return self._change("branch delete", wanted, change)

    def matching(
        self, *, older_seconds: float | None = None, merged_into: str | None = None, archived: bool = False
    ) -> tuple[Listing, Listing]:
        """Return the branches that match the filters, as those to delete and those to keep.

        A branch matches if it passes every given filter: last used more than `older_seconds` ago; tip on the line of
        `merged_into`. The current branch, branches with checkpoints and branches of other machines are kept.
        """
        graph = self._graph()
        on_line: set[bytes] = set()
        if merged_into is not None:
            target = self._refs.read(self._find(graph, merged_into))
            assert target is not None
            on_line = set(graph.line(target))
        going: Listing = []
        kept: Listing = []
        for branch in self.list(archived=archived):
            if older_seconds is not None and self._store.clock() - branch.seconds <= older_seconds:
                continue
            if merged_into is not None and (branch.name == merged_into or branch.tip not in on_line):
                continue
            stays = branch.state == CURRENT or branch.pinned or branch.owner is not None
            (kept if stays else going).append(branch)
        return going, kept

    def archive(self, name: str) -> Operation:
        def change(graph: Graph, number: int) -> tuple[str, Iterable[Rename]]:
            ref = self._own(graph, name, "archived")
            if name not in graph.branches:
                raise Usage(
                    f"branch {name} is already archived", f"`snapstore branch unarchive {name}` lists it again."
                )
            self._refuse_current(graph, name, "archived")
            return f"archive of branch {name}", [(ref, self._place("snapstore/archive", name))]

        return self._change("branch archive", [name], change)

    def unarchive(self, name: str, *, force: bool = False) -> Operation:
        def change(graph: Graph, number: int) -> tuple[str, Iterable[Rename]]:
            ref = self._own(graph, name, "listed")
            if name in graph.branches:
                raise Usage(f"branch {name} is not archived", "`snapstore branches` shows it.")
            limit = self._store.header.max_branches
            count = sum(graph.owner_of(name) is None for name in graph.branches)
            if limit and count >= limit and not force:
                raise Usage(
                    f"session {self._session} already lists {count} branches, and {limit} is the limit",
                    "Archive or delete one first, or add --force.",
                )
            return f"unarchive of branch {name}", [(ref, self._place("heads", name))]

        return self._change("branch unarchive", [name], change)

    def promote(self, name: str) -> Operation | None:
        """Make a branch the canonical line `main` (C19); None if it is `main` already.

        The previous `main` becomes `archive-main` (`archive-main-2`, …) in the archive. Only names change: no node and
        no file changes, and the cursor stays on its node. A previous `main` that is the current branch stays listed,
        because the current branch cannot be archived.
        """

        def change(graph: Graph, number: int) -> tuple[str, Iterable[Rename]]:
            renames = [(self._own(graph, name, "promoted"), self._place("heads", MAIN))]
            if name != MAIN and (MAIN in graph.branches or MAIN in graph.archived):
                place = "heads" if graph.branch == MAIN else "snapstore/archive"
                spare = self._place(place, self._unused_name(f"archive-{MAIN}"))
                renames.insert(0, (self._own(graph, MAIN, "replaced"), spare))
            return f"promotion of branch {name} to {MAIN}", renames

        if name == MAIN and self._refs.read(self._place("heads", MAIN)):
            return None
        return self._change("branch promote", [name], change)

    def previous_main(self, operation: Operation) -> str | None:
        """Return a text for the branch that a promotion made of the previous `main`."""
        renames = dict(classify_moves(operation.refs)[0])
        found = renames.get(self._place("heads", MAIN)) or renames.get(self._place("snapstore/archive", MAIN))
        return _in_words(found) if found else None

    def checkpoint(self, name: str, oid: bytes, *, force: bool = False) -> Operation | None:
        """Pin a name to a node; None if the name is pinned there already."""
        ref = self._place("tags", check_own_name(name, "checkpoint"))
        with self._store.changing():
            if self._refs.read(ref) == oid:
                return None

        def change(graph: Graph, number: int) -> tuple[str, Iterable[Rename]]:
            if oid not in graph.nodes:
                raise Usage(
                    f"{oid.hex()[:8]} is not a node of session {self._session}", "Add the right --session NAME."
                )
            if self._refs.read(ref) is None:
                self._refuse_taken(name)
                return f"checkpoint {name}", []
            self._refuse_foreign(graph, ref, f"checkpoint {name}", "moved")
            if not force:
                raise Usage(f"checkpoint {name} already exists", "Add --force to move it here.")
            return f"move of checkpoint {name}", [(ref, self._deleted_checkpoint(number, name))]

        return self._change("checkpoint", [name, oid.hex()], change, {ref: oid})

    def delete_checkpoint(self, name: str) -> Operation:
        def change(graph: Graph, number: int) -> tuple[str, Iterable[Rename]]:
            if self._refs.read(self._place("tags", name)) is None:
                names = ", ".join(graph.checkpoints) or "none"
                hint = did_you_mean(similar(name, graph.checkpoints), f"Checkpoints here: {names}.")
                raise Unknown(f"there is no checkpoint {name!r}", hint, checkpoint=name)
            self._refuse_foreign(graph, self._place("tags", name), f"checkpoint {name}", "deleted")
            return f"delete of checkpoint {name}", [(self._place("tags", name), self._deleted_checkpoint(number, name))]

        check_name(name, "checkpoint")
        return self._change("checkpoint delete", [name], change)

    def _change(
        self,
        kind: str,
        arguments: Iterable[str],
        change: Callable[[Graph, int], tuple[str, Iterable[Rename]]],
        made: Mapping[str, bytes] | None = None,
    ) -> Operation:
        store = self._store
        with store.changing():
            graph = self._graph()
            number = Operations(store).next_number()
            what, renames = change(graph, number)
            changes = RefChanges(self._refs, self._session, graph.branch)
            changes.rename(renames, made or {})
            operation = Operation(
                number=number,
                session=self._session,
                kind=kind,
                at=timestamp(store.clock()),
                what=what,
                arguments=arguments,
                refs=changes.moves(),
            )
            name, data = operation.document()
            files = {name: data, **self._documents(graph, changes)}
            store.journal.carry_out(operation.refs, files, what=what)
        return operation

    def _documents(self, graph: Graph, changes: RefChanges) -> dict[str, bytes | None]:
        """Return the session's document as the change requires it, if it differs.

        The current branch may have another name afterwards. The floor keeps the sequence numbers of a deleted branch
        from being used again.
        """
        found = self._store.documents.session(self._session)
        state = found or SessionState(session=self._session, branch=graph.branch, floor=-1)
        before = (state.branch, state.floor)
        state.branch = changes.branch
        if found is None or any(name.startswith(DELETED) for name, _, _ in changes.moves()):
            state.floor = max(state.floor, highest_seq(self._store, self._session))
        changed = found is None or before != (state.branch, state.floor)
        return {f"sessions/{self._session}.json": encode(state)} if changed else {}

    # Undoing operations.

    def undo_operations(
        self, *operations: Operation, target: bytes | None = None
    ) -> tuple[Moves, dict[str, bytes | None], str]:
        """Return ref moves, state files and current branch for undoing operations.

        `operations` are newest first. Each ref moves back from where it is now: a renamed branch keeps the turns that
        it gained since, a deleted branch returns, and a created checkpoint is removed. If the operations also moved the
        session, `target` is the node to return to. Raises Conflict if a later change prevents the undo.
        """
        graph = self._graph()
        changes = RefChanges(self._refs, self._session, graph.branch)
        for operation in operations:
            if operation.refs:
                self._undo_operation(operation, changes)
            if operation.from_ is not None and operation.from_ != operation.to:
                changes.put_on_branch(operation.from_["branch"])
        if target is not None and target != graph.cursor:
            changes.put_on_node(target)
        return changes.moves(), self._documents(graph, changes), changes.branch

    def _undo_operation(self, operation: Operation, changes: RefChanges) -> None:
        renames, made, lost = classify_moves(operation.refs)
        back = {target: source for source, target in renames}
        for name in back:
            if changes.value(name) is None:
                raise _cannot_undo(operation, f"{_in_words(name)} no longer exists")
        for name, value in made.items():
            if changes.value(name) != value:
                raise _cannot_undo(operation, f"{_in_words(name)} has changed")
        for name in (*back.values(), *lost):
            holder = self._ref_named(name.rpartition("/")[2], changes, besides={*back, *made})
            if holder and not name.startswith(DELETED):
                raise _cannot_undo(operation, f"there is another {_in_words(holder)} now")
        current = self._place("heads", changes.branch)
        if not back.get(current, current).startswith(self._place("heads", "")):
            raise _cannot_undo(operation, f"you are on branch {changes.branch}", "Switch to another one first.")
        changes.rename(back.items(), lost, gone=made)

    # Names.

    def _graph(self) -> Graph:
        return Graph(self._store, self._session)

    def _place(self, kind: str, name: str) -> str:
        return f"refs/{kind}/{self._session}/{name}"

    def _deleted_checkpoint(self, number: int, name: str) -> str:
        return f"{self._place('snapstore/deleted', str(number))}/tags/{name}"

    def _find(self, graph: Graph, name: str) -> str:
        """Return the ref of a branch, listed or archived."""
        if name in graph.branches:
            return self._place("heads", name)
        if name in graph.archived:
            return self._place("snapstore/archive", name)
        check_name(name, "branch")
        known = [*graph.branches, *graph.archived]
        hint = did_you_mean(similar(name, known), f"Branches here: {', '.join(known[:10]) or 'none'}.")
        raise Unknown(f"there is no branch {name!r}", hint, branch=name)

    def _own(self, graph: Graph, name: str, what: str) -> str:
        """Return the ref of a branch; refuse one that belongs to another machine."""
        ref = self._find(graph, name)
        self._refuse_foreign(graph, ref, f"branch {name}", what)
        return ref

    def _refuse_foreign(self, graph: Graph, ref: str, called: str, what: str) -> None:
        owner = graph.foreign.owner(ref)
        if owner is not None:
            raise Usage(
                f"{called} belongs to {owner['name']} and cannot be {what} here",
                "`snapstore goto` its last turn and continue there: that makes a branch of your own.",
                machine=owner["name"],
            )

    def _refuse_current(self, graph: Graph, name: str, what: str) -> None:
        if name == graph.branch:
            raise Usage(
                f"you are on branch {name}: it cannot be {what}",
                "Switch to another one first: `snapstore switch BRANCH`.",
                branch=name,
            )

    def _refuse_taken(self, name: str) -> None:
        holder = self._ref_named(name)
        if holder:
            raise Usage(f"{_in_words(holder)} already exists", "Choose another name.", name=name)

    def _ref_named(self, name: str, refs: RefChanges | None = None, besides: Iterable[str] = ()) -> str | None:
        """Return the ref that already has a name, or None.

        Branches and checkpoints share one namespace, because an address may name either. Case is ignored, because some
        file systems treat `Login` and `login` as the same name.
        """
        source = refs.names if refs is not None else self._refs.list
        wanted = name.casefold()
        for place in ("heads", "snapstore/archive", "tags"):
            for ref in source(self._place(place, "")):
                if ref not in besides and ref.rpartition("/")[2].casefold() == wanted:
                    return ref
        return None

    def _unused_name(self, name: str) -> str:
        found, number = name, 1
        while self._ref_named(found):
            number += 1
            found = f"{name}-{number}"
        return found


def _in_words(ref: str) -> str:
    kinds = {
        "tags": "checkpoint",
        "heads": "branch",
        "archive": "archived branch",
        "deleted": "deleted branch",
        "pruned": "pruned branch",
    }
    parts = ref.split("/")
    kind = parts[1] if parts[1] != "snapstore" else parts[2]
    if kind == "deleted" and parts[-2] == "tags":
        return f"deleted checkpoint {parts[-1]}"
    return f"{kinds.get(kind, kind)} {parts[-1]}"


def check_own_name(name: str, what: str) -> str:
    """Check a name that a person gives: valid for git and files, not an address."""
    check_name(name, what)
    if reads_as_address(name):
        raise Unsafe(f"{name!r} cannot be a {what} name: it looks like a turn, a time or a hash", "Add a letter to it.")
    return name


def _cannot_undo(operation: Operation, why: str, hint: str = "") -> Conflict:
    hint = hint or "Undo or change that first: `snapstore ops` lists what happened since."
    return Conflict(f"operation {operation.number} ({operation.what}) cannot be undone: {why}", hint)
