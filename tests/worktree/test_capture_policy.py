"""Which paths may be captured or written, and why not: one answer for hooks, scans, moves, edits of a file, imports."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers import in_commit, line, write
from import_stories import Told, bring_in

from snapstore import Store
from snapstore.errors import Unsafe
from snapstore.timeline.moves.file_edit import FileEdit
from snapstore.worktree.ignore.policy import NEVER, OTHERS, STORE, UNSAFE, CapturePolicy

CONVERSATION = "agent/projects/-x/a.jsonl"


@pytest.fixture
def agents_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A root in which Claude Code keeps its conversations."""
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(root / "agent"))
    write(root / CONVERSATION, "{}\n")
    return root


def test_each_reason() -> None:
    """G-09: stores, `.git` and paths that lead out; then the user's patterns and other programs' files."""
    policy = CapturePolicy(b"/root", store=b"data/stores", others=["/chats/"], never_capture=[".env", "!/chats/"])
    answers = {
        b"a/b": None,
        b"data/storeslike": None,
        b"data/stores": STORE,
        b"data/stores/state/format": STORE,
        b".git/config": UNSAFE,
        b"sub/.GIT/config": UNSAFE,
        b"../a": UNSAFE,
        b"a//b": UNSAFE,
        b"x" * 256: UNSAFE,
        b"/".join([b"x" * 200] * 21): UNSAFE,
        b"sub/.env": NEVER,
        b".env/below": NEVER,
        b"chats/1": OTHERS,  # the pattern with `!` is the user's and opens nothing of another program's
    }
    assert {path: policy.why_not(path) for path in answers} == answers
    assert [path for path in answers if policy.is_unsafe(path)] == [
        path for path, why in answers.items() if why in (STORE, UNSAFE)
    ]


def test_a_root_without_patterns_excludes_nothing() -> None:
    policy = CapturePolicy(b"/")
    assert not policy.excludes and policy.why_not(b"a") is None and policy.excluded(b"a", True) is None


def test_the_policy_follows_the_settings(store: Store) -> None:
    assert store.policy.why_not(b".env") is None
    store.configure(never_capture=[".env"])
    assert store.policy.why_not(b".env") == NEVER


@pytest.mark.parametrize("how", ["write", "edit", "remove"])
def test_an_agents_own_file_is_not_edited(agents_root: Path, how: str) -> None:
    """C1, S1-09: such an edit was once reported as done, and nothing was written."""
    with Store.open(agents_root, create=True) as store:
        session = store.session("s")
        edit = FileEdit(session, session.inside(agents_root / CONVERSATION))
        with pytest.raises(Unsafe, match="another program"):
            {"write": lambda: edit.write(b"x"), "edit": lambda: edit.edit(b"{}", b"x"), "remove": edit.remove}[how]()
    assert (agents_root / CONVERSATION).read_text() == "{}\n"


def test_an_imported_conversation_does_not_bring_in_another_programs_file(agents_root: Path) -> None:
    builder = Told()
    builder.prompt("Write two files")
    builder.created("a.txt", "1\n")
    builder.created(CONVERSATION, "{}\n")
    builder.reply("Done")
    write(agents_root / "a.txt", "1\n")
    with Store.open(agents_root, create=True) as store:
        bring_in(store, builder, "imported")
        paths = {path for node in line(store, "imported") for path in in_commit(store, node["commit"])}
        assert paths == {b"a.txt"}
