"""MCP tools for an agent: read, preview, undo, redo and restore turns.

An MCP server is called by the agent and does not see when a turn begins or ends, so nothing is recorded here. A model
that requests an undo does so in the middle of a turn. The undo is refused unless the model also requests to close the
turn.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, Literal

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import Field, ValidationError

from snapstore import __version__
from snapstore.api import Store
from snapstore.daemon.control import running_pid
from snapstore.errors import Busy, Conflict, NoStore, SnapstoreError, Unsafe, Usage
from snapstore.store.conversations import Conversations
from snapstore.store.handle import failed
from snapstore.surface.move_request import MakePlan, MoveRequest, carry_out, not_reported, preview_move
from snapstore.surface.records.base import document
from snapstore.surface.records.errors import ErrorRecord
from snapstore.surface.records.moves import MoveRecord
from snapstore.surface.records.nodes import DiffRecord, LogRecord
from snapstore.surface.records.status import StatusRecord
from snapstore.surface.status import read_status
from snapstore.surface.wording import mergeable
from snapstore.timeline.history.history import History
from snapstore.timeline.history.nodes import FileChange
from snapstore.timeline.moves.plan import Policy

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mcp.server.mcpserver import Context

    from snapstore.api import Session
    from snapstore.surface.records.base import Record
    from snapstore.timeline.moves.plan import Plan

    Below = Callable[[bytes, str], bytes]

LONGEST = 200_000  # characters of a response, because a model has to read it
_STEPS = ((200, 100_000), (50, 20_000), (10, 1_000), (3, 200))  # limits to try: entries of a list, characters of a text

INSTRUCTIONS = """Undo for this project. Every turn is recorded with the files it changed; nothing recorded is ever \
lost. Addresses: `5` turn 5, `0` before the first, `@` where you are, `#12` by sequence, a branch, a checkpoint, or a \
commit. Use `list` and `preview` before a move, and move only when the user asks for it."""

Count = Annotated[int, Field(ge=1, description="How many turns.")]
Address = Annotated[str, Field(description="A turn's number (0: before the first), a branch, a checkpoint, a commit.")]
Paths = Annotated[list[str], Field(description="Files or folders, from the project's top.")]
OnConflict = Annotated[
    Literal["refuse", "merge", "skip", "force"] | None,
    Field(
        description="Files that others changed since: refuse the whole move, merge them three ways, leave them as they "
        "are, or replace them. All but refuse save what is on disk first. Left out: merge where that is clean, else "
        "refuse; restore never merges by itself."
    ),
]
CloseTurn = Annotated[
    bool,
    Field(description="Close the open turn as interrupted first. It is then the last turn: `undo` begins with it."),
]

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
MOVES = ToolAnnotations(read_only_hint=False, destructive_hint=True, idempotent_hint=False, open_world_hint=False)


def serve(folders: list[str], session: str | None, below: Below) -> None:
    """Serve on standard input and output until the input ends.

    The project is that of the first folder with a store.
    """
    server(Tools(folders, session, below)).run("stdio")


def server(tools: Tools) -> MCPServer[Any]:
    made = _Server("snapstore", version=__version__, instructions=INSTRUCTIONS, log_level="ERROR")
    reads: dict[str, Callable[..., str]] = {
        "status": tools.status,
        "list": tools.turns,
        "diff": tools.diff,
        "preview": tools.preview,
    }
    moves: dict[str, Callable[..., str]] = {"undo": tools.undo, "redo": tools.redo, "restore": tools.restore}
    for name, tool in {**reads, **moves}.items():
        told = " ".join((tool.__doc__ or "").split())
        kind = READS if name in reads else MOVES
        # Text only: structured content cannot carry a path that is not UTF-8.
        made.add_tool(tool, name, description=told, annotations=kind, structured_output=False)
    return made


class Tools:
    """The tools. Each returns the document that `--json` of its command prints.

    The docstring of a tool is its description for the model.
    """

    def __init__(self, folders: list[str], session: str | None, below: Below) -> None:
        self._folders = folders
        self._name = session
        self._below = below
        self._one = Lock()  # calls arrive on threads, and moves must not run concurrently

    def status(self) -> str:
        """Show the state: session, branch, current turn, undone turns, open turns, files changed since.
        Changes nothing."""
        with self._session() as session:
            found = StatusRecord.of(read_status(session, session.store.recovered))
            return _text(session, found.with_warm_process(running_pid()))

    def turns(
        self,
        limit: Annotated[int, Field(ge=1, le=100, description="How many, counted from the newest.")] = 20,
    ) -> str:
        """List the recorded turns with prompts and changed files, oldest first, and the edits made between turns.
        Changes nothing."""
        with self._session() as session:
            history = History(session)
            return _text(session, LogRecord.of(history, history.nodes(limit)))

    def diff(self, since: Address = "@", until: Address | None = None, paths: Paths = []) -> str:  # noqa: B006
        """Show differences as a patch: from an address to the files on disk, or to another address. Changes nothing."""
        with self._session() as session:
            history = History(session)
            tops = self._inside(session, paths)
            old, new = history.side(since), history.side(until)
            found = history.changes(old.tree, new.tree)
            changes = [part for change in found for part in change.within(lambda path: _covered(tops, path))]
            return _text(session, DiffRecord.of(session.name, old, new, changes, {"patch": _patch(history, changes)}))

    def preview(
        self,
        move: Literal["undo", "redo", "restore"],
        count: Count = 1,
        address: Address | None = None,
        paths: Paths = [],  # noqa: B006
        on_conflict: OnConflict = None,
    ) -> str:
        """Show what undo, redo or restore would write and remove, and any conflicts. `count` is for undo and redo;
        `address` and `paths` are for restore. Changes nothing."""
        if move == "restore":
            if address is None:
                raise Usage("restore from where?", "Give `address`: a turn's number, a branch, a checkpoint, a commit.")
            return self._move(lambda session, how: self._restoring(session, address, paths, how), on_conflict)
        if address is not None or paths:
            raise Usage(f"`address` and `paths` are not for {move}", "Give `count`, or preview restore.")
        if move == "undo":
            return self._move(lambda session, how: session.plan_undo(count, **how), on_conflict)
        return self._move(lambda session, how: session.plan_redo(count, **how), on_conflict)

    def undo(self, count: Count = 1, on_conflict: OnConflict = None, close_turn: CloseTurn = False) -> str:
        """Undo the last turns: only what they changed; all other edits stay. Nothing is lost: `redo` redoes them,
        now or later."""
        return self._move(lambda session, how: session.plan_undo(count, **how), on_conflict, True, close_turn)

    def redo(
        self,
        count: Count = 1,
        all: Annotated[bool, Field(description="Redo all undone turns, whatever `count` says.")] = False,
        on_conflict: OnConflict = None,
        close_turn: CloseTurn = False,
    ) -> str:
        """Redo undone turns. Nothing is lost: `undo` undoes them again."""
        wanted = None if all else count
        return self._move(lambda session, how: session.plan_redo(wanted, **how), on_conflict, True, close_turn)

    def restore(
        self, address: Address, paths: Paths, on_conflict: OnConflict = None, close_turn: CloseTurn = False
    ) -> str:
        """Restore single files or folders as they were after a turn; all others stay. Nothing is lost: the result is
        a new turn, and `undo` undoes it."""
        return self._move(
            lambda session, how: self._restoring(session, address, paths, how), on_conflict, True, close_turn
        )

    # Planning and moving.

    def _move(
        self,
        plan: MakePlan,
        on_conflict: str | None,
        moves: bool = False,
        close_turn: bool = False,
    ) -> str:
        request = MoveRequest[None](plan, Policy(on_conflict), close_turn=close_turn)
        with self._session() as session:
            if not moves:
                return _text(session, MoveRecord.of(preview_move(session, request), preview=True))
            moved = carry_out(session, request).moved
            try:
                return _text(session, MoveRecord.of(moved))
            except Exception as error:
                raise not_reported(moved.plan.kind, str(error), "`status` shows where you are") from error

    def _restoring(self, session: Session, address: str, paths: list[str], how: dict[str, Any]) -> Plan:
        if not paths:
            raise Usage("which files?", "Name them in `paths`.")
        return session.plan_restore(address, self._inside(session, paths), **how)

    def _inside(self, session: Session, paths: list[str]) -> list[bytes]:
        root = session.store.root
        try:
            return [self._below(root, os.path.join(os.fsdecode(root), path)) for path in paths]
        except ValueError as error:
            raise Unsafe(f"not a path: {error}", "Name files of this project.") from None

    @contextmanager
    def _session(self) -> Iterator[Session]:
        """Open the session for one call.

        The store is searched for each time, because it may be created while the agent runs.
        """
        with self._one, self._store() as store:
            yield _session(store, self._name)

    def _store(self) -> Store:
        missing: NoStore | None = None
        for folder in self._folders:
            try:
                return Store.open(folder)
            except NoStore as error:
                missing = missing or error
        raise missing or NoStore("no folder was given")


def _session(store: Store, name: str | None) -> Session:
    """Return the named session, or the calling agent's, or the last active one."""
    asking = os.environ.get("CLAUDE_CODE_SESSION_ID")
    if name is None and asking and Conversations(store).session_of(asking) is not None:
        name = asking
    return store.session(name)


def _covered(tops: list[bytes], path: bytes) -> bool:
    return not tops or any(_covers(top, path) for top in tops)


def _covers(top: bytes, path: bytes) -> bool:
    return not top or (path + b"/").startswith(top + b"/")


def _patch(history: History, changes: list[FileChange]) -> str:
    """Return the patch, generated only up to the limit of a response."""
    lines, room = [], _STEPS[0][1] + 1  # one character over the limit, so that the response is marked as shortened
    for line in history.patch(changes):
        lines.append(os.fsdecode(line)[:room])
        room -= len(lines[-1])
        if not room:
            break
    return "".join(lines)


class _Server(MCPServer[Any]):
    """Reports every failure as a document.

    An unknown argument is a failure too: with a misspelt argument ignored, an undo would become a different undo.
    """

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> Any:  # the SDK's own return type includes results that none of our tools returns
        try:
            schemas = {tool.name: tool.input_schema for tool in await self.list_tools()}
            known = schemas[name]["properties"] if name in schemas else arguments
            unknown = ", ".join(f"`{word}`" for word in arguments if word not in known)
            if unknown:
                raise Usage(f"{name} has no argument {unknown}", f"It has: {', '.join(known) or 'none'}.")
            return await super().call_tool(name, arguments, context)
        except Usage as error:
            refusal: SnapstoreError = error
        except ToolError as error:
            refusal = _refusal(error)
        text = _json(_bounded(document(ErrorRecord.of(refusal))))
        return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def _refusal(error: ToolError) -> SnapstoreError:
    """Return the error of a tool as a SnapstoreError, with a hint for an agent."""
    cause = error.__cause__
    conflicts = cause.details.get("conflicts") if isinstance(cause, Conflict) else None
    if isinstance(cause, Conflict) and isinstance(conflicts, list) and conflicts:
        untried = any(not item.why and mergeable(item) for item in conflicts)
        ways = "merge, skip or force" if untried else "skip or force"
        cause.hint = f"Nothing was written. Ask the user, then call again with on_conflict: {ways}."
    elif isinstance(cause, Busy) and "--cancel" in cause.hint:
        cause.hint = (
            "It is most likely your own turn. Let the user run `snapstore undo` after it, or call again with "
            "close_turn: true, which makes it the last turn."
        )
    if isinstance(cause, SnapstoreError):
        return cause
    if isinstance(cause, OSError):
        return failed(cause)
    if isinstance(cause, ValidationError) and not isinstance(error, UnexpectedToolError):
        wrong = [f"{'.'.join(str(part) for part in item['loc'])}: {item['msg']}" for item in cause.errors()]
        return Usage("; ".join(wrong), "See the tool's input schema.")
    if cause is None:
        return Usage(str(error), "See the list of tools.")
    return SnapstoreError(f"unexpected: {type(cause).__name__}: {cause}", "`snapstore status` shows where you are.")


# Responses.


def _text(session: Session, record: Record) -> str:
    answer = document(record)
    if session.store.recovered is not None:
        answer["recovery"] = session.store.recovered
    return _json(_bounded(answer))


def _json(answer: dict[str, Any]) -> str:
    """Encode readably, or in ASCII if a path is not UTF-8, which needs an escape."""
    text = json.dumps(answer, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(answer)
    return text


def _bounded(answer: dict[str, Any]) -> dict[str, Any]:
    """Shorten a document to the limit, and list what was cut."""
    for entries, characters in _STEPS:
        cut: dict[str, None] = {}
        shorter: dict[str, Any] = _shortened(answer, entries, characters, "", cut)
        if len(_json(shorter)) <= LONGEST:
            break
    return {**shorter, "shortened": list(cut)[:20]} if cut else shorter


def _shortened(value: Any, entries: int, characters: int, name: str, cut: dict[str, None]) -> Any:
    if isinstance(value, str) and len(value) > characters:
        cut[f"{name}: the first {characters:,} characters"] = None
        return value[:characters] + "…"
    if isinstance(value, dict):
        return {key: _shortened(item, entries, characters, key, cut) for key, item in value.items()}
    if isinstance(value, list):
        most = entries if name != "nodes" else len(value)  # the caller has limited the number of nodes
        if len(value) > most:
            cut[f"{name}: {most} of {len(value):,}"] = None
        return [_shortened(item, entries, characters, name, cut) for item in value[:most]]
    return value
