"""Conversations to import: Claude Code as it answers, and a store that takes its transcript in."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from helpers import assert_cache_adds_up, assert_whole, bit_by_bit
from test_transcripts_builders import SESSION, Claude

from snapstore import Store
from snapstore.agents.import_session import Import, prepare
from snapstore.timeline.record.import_turns import Imported

HOME = "/home/ada/project"  # where the builders say that they are


NAME = "claude-0b0e3f52"


class Told(Claude):
    """Claude Code's transcript, with each file's content before an edit."""

    def outcome(self, id: str, outcome: Any, text: str = "ok", **fields: Any) -> None:
        self.user([{"type": "tool_result", "tool_use_id": id, "content": text, **fields}], toolUseResult=outcome)

    def wrote(self, path: str, content: str, **outcome: Any) -> None:
        id = f"w{self.count}"
        self.use(id, "Write", {"file_path": f"{HOME}/{path}", "content": content})
        self.outcome(id, {"filePath": f"{HOME}/{path}", "content": content, **outcome})

    def created(self, path: str, content: str) -> None:
        self.wrote(path, content, type="create", originalFile=None)

    def edited(self, path: str, old: str, new: str, **outcome: Any) -> None:
        id = f"e{self.count}"
        every = {"replace_all": True} if outcome.get("replaceAll") else {}
        self.use(id, "Edit", {"file_path": f"{HOME}/{path}", "old_string": old, "new_string": new, **every})
        self.outcome(id, {"filePath": f"{HOME}/{path}", "oldString": old, "newString": new, **outcome})


def written(builder: Any, root: Path, name: str = f"{SESSION}.jsonl") -> Path:
    """Write the transcript as if the conversation had taken place in the project."""
    for field in ("records", "info"):
        if hasattr(builder, field):
            setattr(builder, field, json.loads(json.dumps(getattr(builder, field)).replace(HOME, str(root))))
    path: Path = builder.write(root.parent / name)
    return path


def bring_in(store: Store, builder: Any, session: str = NAME) -> tuple[Import, Imported]:
    root = Path(os.fsdecode(store.root))
    before = bit_by_bit(root)
    with prepare(written(builder, root), builder.agent, SESSION, store.root, store.home) as found:
        imported = found.carry_out(store, session)
    assert bit_by_bit(root) == before, "an import changes nothing on disk"
    assert_whole(store)
    assert_cache_adds_up(store)
    assert [change for turn in found.turns for change in turn.changes] or not imported.verified
    return found, imported


def look(store: Store, builder: Any) -> Import:
    """Return what would be imported."""
    root = Path(os.fsdecode(store.root))
    with prepare(written(builder, root), builder.agent, SESSION, store.root, store.home) as found:
        return found


def undo(store: Store, count: int = 1, session: str = NAME) -> None:
    own = store.session(session)
    own.move(own.plan_undo(count))


def redo(store: Store, count: int | None = 1, session: str = NAME) -> None:
    own = store.session(session)
    own.move(own.plan_redo(count))


def unknown(found: Import) -> list[list[tuple[str | None, str]]]:
    return [turn.unknown for turn in found.turns]
