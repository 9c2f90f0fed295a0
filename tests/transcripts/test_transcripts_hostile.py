"""Files that are odd, broken, huge, cut off, rewritten or not files at all.

G-20, S0-07, S1-13, S1-15, S1-63, S2-09."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conversations import read_conversation
from hypothesis import example, given, settings
from hypothesis import strategies as st
from test_transcripts_builders import ALL, LINES, SESSION, Claude, Codex, Copilot, Cursor, Gemini, story

from snapstore.errors import Corrupt, SnapstoreError, Unknown, Unsafe
from snapstore.transcripts.locate import claude_sessions, claude_slug, find_transcript
from snapstore.transcripts.readers.read import AGENTS, last_turns

# Odd lines.

ODD = {
    "bom": lambda data: b"\xef\xbb\xbf" + data,
    "crlf": lambda data: data.replace(b"\n", b"\r\n"),
    "blank lines": lambda data: data.replace(b"\n", b"\n\n  \n"),
    "a hole of NULs": lambda data: data.replace(b"\n", b"\n" + b"\0" * 4096, 1),
    "no end of the last line": lambda data: data[:-1],
}
BROKEN = {
    "not json": b"{not json\n",
    "half a line": b'{"type":"user","mess\n',
    "other values": b"[1,2]\n",
    "deep nesting": b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "NULs and controls": b'{"type":"x\0\x01\n',
    "not utf-8": b'\xff\xfe{"\xc3\x28\n',
    "a huge number": b'{"a":' + b"9" * 5000 + b"}\n",
}


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("oddity", ODD)
def test_ways_to_write_the_same_lines(kind: type[Any], oddity: str, tmp_path: Path) -> None:
    """G-20: byte order mark, line ends, holes and empty lines change nothing."""
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(ODD[oddity](story(kind()).data()))
    conversation = read_conversation(path, kind.agent)
    assert [turn.prompt for turn in conversation.turns] == ["make it shout", "now whisper — ünïcödé", "thanks"]
    assert conversation.malformed_lines == 0


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("damage", BROKEN)
def test_broken_lines_are_counted_and_kept(kind: type[Any], damage: str, tmp_path: Path) -> None:
    """S0-07: they are in the raw lines, and cost nothing else."""
    lines = story(kind()).data().splitlines(keepends=True)
    lines.insert(len(lines) - 2, BROKEN[damage])
    path = tmp_path / f"{SESSION}.jsonl"
    path.write_bytes(b"".join(lines))
    conversation = read_conversation(path, kind.agent)
    assert len(conversation.turns) == 3
    assert conversation.malformed_lines == 1
    assert any(BROKEN[damage] in turn.lines for turn in conversation.turns)


@pytest.mark.parametrize("kind", ALL)
def test_lone_surrogates_do_not_reach_whoever_prints(kind: type[Any], tmp_path: Path) -> None:
    builder = kind()
    builder.prompt("half \ud83d an emoji")
    builder.edit("c", "/a\udcff", "\ud800", "new")
    builder.reply("\udfff")
    path = builder.write(tmp_path / "t")
    (turn,) = read_conversation(path, kind.agent, SESSION).turns
    for text in (turn.prompt, *turn.replies, turn.tool_calls[0].file_path, turn.tool_calls[0].old_string):
        assert text is not None
        text.encode()


def test_a_line_of_fifty_megabytes(tmp_path: Path) -> None:
    builder = Claude()
    builder.prompt("look")
    builder.use("t", "Read", {"file_path": "/a"})
    builder.answer("t", "x" * 50_000_000)
    builder.prompt("next")
    path = builder.write(tmp_path / "t.jsonl")
    (turn,) = last_turns(path, "claude")
    assert turn.prompt == "next"
    first = read_conversation(path, "claude").turns[0]
    assert len(first.tool_calls[0].result or "") == 50_000_000


def test_a_line_longer_than_any_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("snapstore.transcripts.lines.LONGEST_LINE", 5000)
    builder = Claude()
    builder.prompt("one")
    builder.reply("x" * 9000)
    builder.prompt("two")
    conversation = read_conversation(builder.write(tmp_path / "t.jsonl"), "claude")
    assert [turn.prompt for turn in conversation.turns] == ["one", "two"]
    assert conversation.malformed_lines == 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_field_may_be_anything(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    """G-20: formats move; whatever a field holds, a file is read without an exception."""
    kind = data.draw(st.sampled_from(ALL[:-1]))
    builder = story(kind())
    for _ in range(4):
        spot: Any = data.draw(st.sampled_from(builder.records))
        while True:
            keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
            if not keys:
                break
            key = data.draw(st.sampled_from(keys))
            if not isinstance(spot[key], dict | list) or data.draw(st.booleans()):
                spot[key] = data.draw(VALUES)
                break
            spot = spot[key]
    path = tmp_path_factory.mktemp("any") / "t"
    try:
        path.write_bytes(builder.data())
    except TypeError:  # the document's header was replaced by a value that cannot be spread
        return
    conversation = read_conversation(path, kind.agent, SESSION)
    last_turns(path, kind.agent, 2, SESSION)
    for turn in conversation.turns:
        json.dumps([call.fields() for call in turn.tool_calls])


# Cut off at any byte.

STORIES = {kind.__name__: story(kind()).data() for kind in (Claude, Codex, Gemini, Copilot, Cursor)}


@settings(max_examples=250, deadline=None)
@given(name=st.sampled_from(sorted(STORIES)), cut=st.floats(0, 1))
@example(name="Gemini", cut=1.5 / len(STORIES["Gemini"]))
def test_any_beginning_of_a_file_is_a_beginning_of_its_turns(
    name: str, cut: float, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """G-20: a file still being written gives the turns so far, the last one perhaps in part."""
    data = STORIES[name]
    agent = next(kind.agent for kind in LINES if kind.__name__ == name)
    path = tmp_path_factory.mktemp("cut") / "t.jsonl"
    path.write_bytes(data)
    whole = read_conversation(path, agent).turns
    path.write_bytes(data[: int(len(data) * cut)])
    begun = read_conversation(path, agent)
    assert begun.malformed_lines == 0
    assert len(begun.turns) <= len(whole)
    for mine, full in zip(begun.turns[:-1], whole, strict=False):
        assert (mine.prompt, mine.replies, mine.lines) == (full.prompt, full.replies, full.lines)
    if begun.turns:
        last, full = begun.turns[-1], whole[len(begun.turns) - 1]
        assert last.prompt in (full.prompt, None)
        assert last.replies == full.replies[: len(last.replies)]
        lines = [line if line.endswith(b"\n") else line + b"\n" for line in last.lines]
        assert lines == full.lines[: len(lines)]


# Not a transcript at all.


@pytest.mark.parametrize("agent", AGENTS)
def test_what_is_no_file_is_refused(agent: str, tmp_path: Path) -> None:
    """G-20: one of our errors, at once: a pipe is not waited for."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "loop").symlink_to("loop")
    for name, error in {
        "missing": Unknown,
        "missing/below": Unknown,
        ".": Unsafe,
        "pipe": Unsafe,
        "loop": Unsafe,
        "x" * 5000: Unsafe,
        "nul\0": Unsafe,
    }.items():
        for read in (read_conversation, last_turns):
            with pytest.raises(error):
                read(tmp_path / name, agent)
    with pytest.raises(Unsafe):
        read_conversation("/dev/zero", agent)


@pytest.mark.parametrize("agent", AGENTS)
def test_empty_and_meaningless_files(agent: str, tmp_path: Path) -> None:
    path = tmp_path / "t"
    for content in (b"", b"\n\n", b"\0" * 100):
        path.write_bytes(content)
        assert not read_conversation(path, agent).turns
        assert last_turns(path, agent) == []
    for content in (os.urandom(5000), b"\x89PNG\r\n\x1a\n" + bytes(500), b"null\n3\n"):
        path.write_bytes(content)
        try:
            assert all(turn.prompt is None for turn in read_conversation(path, agent).turns)
        except Corrupt:
            assert agent in ("cline", "opencode", "gemini")


def test_an_unreadable_file_and_an_unknown_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = story(Claude()).write(tmp_path / "t")

    def refused(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    with pytest.raises(Unknown):
        read_conversation(path, "eliza")
    monkeypatch.setattr(os, "open", refused)
    with pytest.raises(SnapstoreError):
        read_conversation(path, "claude")


def test_a_disk_that_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(*_: object) -> object:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("snapstore.transcripts.readers.read.lines", failing)
    with pytest.raises(Corrupt, match="Input/output"):
        read_conversation(story(Claude()).write(tmp_path / "t"), "claude")


# Finding.


def place(home: Path, *parts: str) -> Path:
    path = home.joinpath(*parts)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"{}\n")
    return path


def test_each_agents_layout(tmp_path: Path) -> None:
    """S1-13: where each agent keeps its transcripts."""
    cwd = tmp_path / "pro.ject_é"
    cwd.mkdir()
    slug = claude_slug(str(cwd))
    expected = {
        "claude": place(tmp_path, ".claude", "projects", slug, f"{SESSION}.jsonl"),
        "codex": place(tmp_path, ".codex", "sessions", "2026", "08", "01", f"rollout-2026-08-01T10-{SESSION}.jsonl"),
        "gemini": place(tmp_path, ".gemini", "tmp", "abc", "chats", f"session-2026-08-01T10-00-{SESSION[:8]}.jsonl"),
        "cline": place(tmp_path, ".cline", "data", "sessions", SESSION, f"{SESSION}.messages.json"),
        "copilot": place(tmp_path, ".copilot", "session-state", SESSION, "events.jsonl"),
        "cursor": place(tmp_path, ".cursor", "projects", "x", "agent-transcripts", SESSION, f"{SESSION}.jsonl"),
        "qwen": place(tmp_path, ".qwen", "projects", "-pro-ject", "chats", f"{SESSION}.jsonl"),
        "opencode": place(tmp_path, ".local", "share", "opencode", "opencode.db"),
    }
    assert set(slug) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-")
    for agent in AGENTS:
        assert find_transcript(agent, SESSION, cwd, tmp_path, {}) == str(expected[agent])
        assert find_transcript(agent, SESSION, None, tmp_path, {}) == str(expected[agent])
        if agent != "opencode":
            with pytest.raises(Unknown):
                find_transcript(agent, "f0000000-other", cwd, tmp_path, {})
    with pytest.raises(Unknown):
        find_transcript("eliza", SESSION, cwd, tmp_path, {})


def test_other_places(tmp_path: Path) -> None:
    """S1-13: moved by the environment, archived, in the older form, of a long path."""
    config = tmp_path / "config"
    moved = place(config, "projects", "mine", f"{SESSION}.jsonl")
    environ = {"CLAUDE_CONFIG_DIR": str(config), "CLAUDE_CODE_PROJECT_DIR_NAME": "mine"}
    assert find_transcript("claude", SESSION, tmp_path, tmp_path, environ) == str(moved)
    deep = tmp_path / ("d" * 150) / ("e" * 150)
    session = place(config, "sessions", "1785", "1785.messages.json")
    assert find_transcript("cline", "1785", tmp_path, tmp_path, {"CLINE_DATA_DIR": str(config)}) == str(session)
    hashed = place(tmp_path, ".claude", "projects", claude_slug(str(deep)) + "-1x2y3z", "long.jsonl")
    assert find_transcript("claude", "long", deep, tmp_path, {}) == str(hashed)
    assert [entry["sessionId"] for entry in claude_sessions(str(deep), tmp_path, {})] == ["long"]
    archived = place(tmp_path, ".codex", "archived_sessions", f"rollout-x-{SESSION}.jsonl")
    assert find_transcript("codex", SESSION, None, tmp_path, {}) == str(archived)
    place(tmp_path, ".codex", "sessions", "2026", "01", "01", "rollout-x-packed.jsonl.zst")
    with pytest.raises(Unknown, match="compressed"):
        find_transcript("codex", "packed", None, tmp_path, {})
    cli = place(tmp_path, ".cursor", "projects", "x", "agent-transcripts", f"{SESSION}.jsonl")
    assert find_transcript("cursor", SESSION, None, tmp_path, {}) == str(cli)
    chats = [".gemini", "tmp", "abc", "chats"]
    other = place(tmp_path, *chats, f"session-2026-08-02T10-00-{SESSION[:8]}.json")
    other.write_text(json.dumps({"sessionId": SESSION[:8] + "-another", "messages": []}, indent=2))
    mine = place(tmp_path, *chats, f"session-2026-08-01T10-00-{SESSION[:8]}.json")
    mine.write_text(json.dumps({"sessionId": SESSION, "messages": []}, indent=2))
    assert find_transcript("gemini", SESSION, None, tmp_path, {}) == str(mine)


@pytest.mark.parametrize(
    "id", ["../x", "a/b", "..", ".", "", "a\0b", "/etc/passwd", "a..b", "x" * 200, "a\n", "-x", "*"]
)
@pytest.mark.parametrize("agent", AGENTS)
def test_ids_that_lead_elsewhere(agent: str, id: str, tmp_path: Path) -> None:
    """S1-63."""
    with pytest.raises(Unsafe):
        find_transcript(agent, id, tmp_path, tmp_path, {})


def test_a_link_among_the_transcripts(tmp_path: Path) -> None:
    """S1-63: a link to another file is no transcript; that the agent's folder itself is one is common."""
    real = place(tmp_path, "dotfiles", "projects", "p", f"{SESSION}.jsonl")
    (tmp_path / ".claude").symlink_to("dotfiles")
    assert os.path.samefile(find_transcript("claude", SESSION, None, tmp_path, {}), real)
    secret = tmp_path / "secret"
    secret.write_bytes(b"{}")
    (real.parent / "linked.jsonl").symlink_to(secret)
    with pytest.raises(Unsafe):
        find_transcript("claude", "linked", None, tmp_path, {})


def test_the_index_of_sessions_is_a_cache(tmp_path: Path) -> None:
    """S1-15: its fields are given where it has them; the files themselves say which sessions there are."""
    folder = tmp_path / ".claude" / "projects" / claude_slug(str(tmp_path))
    place(folder, f"{SESSION}.jsonl")
    place(folder, "other.jsonl")
    entry = {"sessionId": SESSION, "created": "a", "modified": "b", "messageCount": 3, "firstPrompt": "hi"}
    (folder / "sessions-index.json").write_text(json.dumps({"entries": [entry, {"sessionId": "gone"}, 3]}))
    listed = {found["sessionId"]: found for found in claude_sessions(str(tmp_path), tmp_path, {})}
    assert set(listed) == {SESSION, "other"}
    assert listed[SESSION]["messageCount"] == 3
    (folder / "sessions-index.json").write_text("{broken")
    assert len(claude_sessions(str(tmp_path), tmp_path, {})) == 2


# Memory.


def test_a_large_file_in_little_memory(tmp_path: Path) -> None:
    """Turn by turn, memory does not grow with the bytes of the file; nor does the file's reading change it."""
    builder = Claude()
    for number in range(60):
        builder.prompt(f"prompt {number}")
        builder.use(f"t-{number}", "Read", {"file_path": "/a"})
        builder.answer(f"t-{number}", "x" * 1_000_000)
    path = builder.write(tmp_path / "t.jsonl")
    before = path.stat()
    code = (
        "import resource, sys\n"
        "from snapstore.transcripts.lines import Source, opened\n"
        "from snapstore.transcripts.readers.read import last_turns, read_outline, read_turn\n"
        "start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "with opened(sys.argv[1]) as file:\n"
        "    source = Source(file, 4 << 20)\n"
        "    outline = read_outline(source, sys.argv[1], 'claude', None)\n"
        "    turns = (read_turn(source, outline, span, 1) for span in outline.line())\n"
        "    assert sum(1 for turn in turns) == 60\n"
        "assert last_turns(sys.argv[1], 'claude')[0].prompt == 'prompt 59'\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - start)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    grown = int(done.stdout) * (1 if sys.platform == "darwin" else 1024)
    assert grown < 40_000_000, f"{grown} bytes for {before.st_size}"
    after = path.stat()
    assert (before.st_mtime_ns, before.st_size, before.st_ino) == (after.st_mtime_ns, after.st_size, after.st_ino)
