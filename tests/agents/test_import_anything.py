"""Whatever an agent did is imported truthfully and undone to the byte (S0-01, S0-02, S0-03)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from helpers import assert_whole, quick_folder, write
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from import_stories import HOME, NAME, Told, bring_in
from test_transcripts_builders import Codex

from snapstore import Store
from snapstore.timeline.moves.plan import SKIP, Policy

# Whatever was done

FILES = ("a", "b", "d/c")


texts = st.text(alphabet="xy\n", max_size=6)


deeds = st.lists(
    st.tuples(
        st.sampled_from(["write", "edit", "edit", "everywhere", "refused", "next turn", "by hand"]),
        st.sampled_from(FILES),
        texts,
        texts,
        st.booleans(),
    ),
    max_size=10,
)


class Played(Told):
    """A conversation that really happens: each call changes the files as Claude Code would, and is written down, with
    the file as it was before or without."""

    def __init__(self, files: dict[str, str | None]) -> None:
        super().__init__()
        self.files = files
        self.history = [dict(files)]  # at the beginning of each turn, and at the end
        self.foreign: set[str] = set()
        self.prompt("begin")

    def play(self, kind: str, path: str, old: str, new: str, tells: bool) -> None:
        text = self.files[path]
        if kind == "next turn":
            self.history.append(dict(self.files))
            self.prompt("next")
        elif kind == "by hand":
            self.files[path] = new
            self.foreign.add(path)
        elif kind == "write":
            told = {"type": "create" if text is None else "update", "originalFile": text} if tells else {}
            self.wrote(path, new, **told)
            self.files[path] = new
        elif kind == "refused":
            self.use(f"r{self.count}", "Edit", {"file_path": f"{HOME}/{path}", "old_string": old, "new_string": new})
            self.outcome(f"r{self.count - 1}", "Error: no", is_error=True)
        else:
            every = kind == "everywhere"
            made = self.made_by(text, old, new, every)
            if made is not None:
                told = {"originalFile": text} if tells else {}
                self.edited(path, old, new, replaceAll=every, **told)
                self.files[path] = made

    def made_by(self, text: str | None, old: str, new: str, every: bool) -> str | None:
        if not old:
            return new if not text else None
        if text is None or old not in text or (text.count(old) > 1 and not every):
            return None
        if not new and not old.endswith("\n") and old + "\n" in text:
            old += "\n"
        return text.replace(old, new) if every else text.replace(old, new, 1)


def contents(root: Path) -> dict[str, str | None]:
    return {name: (root / name).read_bytes().decode() if (root / name).exists() else None for name in FILES}


def lay_out(root: Path, files: dict[str, str | None]) -> None:
    for name, text in files.items():
        if text is not None:
            write(root / name, text)


def imported_truthfully(chat: Any) -> None:
    """Imports it over the files as they are now, then undoes and redoes all of it."""
    with quick_folder() as folder:
        root = folder / "project"
        root.mkdir()
        lay_out(root, chat.files)
        chat.history.append(dict(chat.files))
        with Store.open(root, create=True, home=str(folder / "home")) as store:
            found, imported = bring_in(store, chat)
            first: dict[str, int] = {}
            for number, turn in enumerate(found.turns):
                for name in FILES:
                    if name.encode() in turn.changes:
                        first.setdefault(name, number)
                        claimed = tuple(None if data is None else data.decode() for data in turn.changes[name.encode()])
                        if name not in chat.foreign:
                            assert claimed == (chat.history[number][name], chat.history[number + 1][name]), name
            assert chat.foreign or not imported.moved_on
            own = store.session(NAME)
            plan = own.plan_undo(len(found.turns), policy=Policy(SKIP))
            own.move(plan)
            after = contents(root)
            for name in FILES:
                if name not in chat.foreign:
                    known = first.get(name)
                    assert after[name] == (chat.history[known] if known is not None else chat.files)[name]
            if not chat.foreign:
                own.move(own.plan_redo(None))
                assert contents(root) == chat.files
            assert_whole(store)


class Patched(Codex):
    """Codex, patching files for real. They end with a line end, as it leaves them."""

    def __init__(self, files: dict[str, str | None]) -> None:
        super().__init__()
        self.files = files
        self.history = [dict(files)]
        self.foreign: set[str] = set()
        self.prompt("begin")

    def play(self, kind: str, path: str, at: int, size: int, new: list[str]) -> None:
        text = self.files[path]
        lines = text.split("\n")[:-1] if text else []
        body = "".join(f"+{one}\n" for one in new)
        if kind == "next turn":
            self.history.append(dict(self.files))
            self.prompt("next")
        elif kind == "add" and text is None:
            self.patch(f"*** Add File: {path}\n{body}")
            self.files[path] = "".join(f"{one}\n" for one in new)
        elif kind == "delete" and text is not None:
            self.patch(f"*** Delete File: {path}\n")
            self.files[path] = None
        elif kind == "update" and (old := lines[at : at + size]):
            self.patch(f"*** Update File: {path}\n@@\n" + "".join(f"-{one}\n" for one in old) + body)
            first = next(n for n in range(len(lines)) if lines[n : n + len(old)] == old)
            lines[first : first + len(old)] = new
            self.files[path] = "".join(f"{one}\n" for one in lines)

    def patch(self, body: str) -> None:
        id = f"p{len(self.records)}"
        text = f"*** Begin Patch\n{body}*** End Patch"
        self.item("custom_tool_call", call_id=id, name="apply_patch", input=text)
        self.item("custom_tool_call_output", call_id=id, output="ok")


quickly = settings(
    max_examples=40, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck), database=None
)


deeply = settings(quickly, max_examples=1500, derandomize=False)


def anything_claude_does(start: dict[str, str | None], done: list[Any]) -> None:
    chat = Played(dict(start))
    for deed in done:
        chat.play(*deed)
    imported_truthfully(chat)


starts = st.fixed_dictionaries({name: st.one_of(st.none(), texts) for name in FILES})


@quickly
@given(starts, deeds)
def test_whatever_claude_did_is_told_truthfully_and_undone_to_the_byte(start: Any, done: Any) -> None:
    """S0-01, S0-02, S0-03: each state that is claimed is the one that was; all undone, the files are as they were."""
    anything_claude_does(start, done)


@pytest.mark.deep
@deeply
@given(starts, deeds)
def test_whatever_claude_did_at_length(start: Any, done: Any) -> None:
    anything_claude_does(start, done)


words = st.lists(st.sampled_from(["x", "y", "", "z z"]), max_size=4)


patches = st.lists(
    st.tuples(
        st.sampled_from(["update", "update", "add", "delete", "next turn"]),
        st.sampled_from(FILES),
        st.integers(0, 3),
        st.integers(1, 2),
        words,
    ),
    max_size=10,
)


lined = st.one_of(st.none(), words.map(lambda found: "".join(f"{one}\n" for one in found)))


@quickly
@given(st.fixed_dictionaries(dict.fromkeys(FILES, lined)), patches)
def test_whatever_codex_patched_is_told_truthfully_and_undone_to_the_byte(start: Any, done: Any) -> None:
    chat = Patched(dict(start))
    for deed in done:
        chat.play(*deed)
    imported_truthfully(chat)


@pytest.mark.deep
@deeply
@given(st.fixed_dictionaries(dict.fromkeys(FILES, lined)), patches)
def test_whatever_codex_patched_at_length(start: Any, done: Any) -> None:
    chat = Patched(dict(start))
    for deed in done:
        chat.play(*deed)
    imported_truthfully(chat)
