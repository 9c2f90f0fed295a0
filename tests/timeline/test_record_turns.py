"""The life of a turn: begun, touched, ended or cancelled; what becomes a commit and what it says."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import (
    assert_equal,
    assert_whole,
    child,
    git,
    in_commit,
    kinds,
    line,
    living_child,
    on_disk,
    record,
    tip,
    touched,
    write,
)

from snapstore import Busy, SnapstoreError, Store, Unknown, Unsafe
from snapstore.timeline.history.history import History

BEGIN_AND_WAIT = """
import sys
from snapstore import Store
store = Store.open(sys.argv[1])
turn = store.session(sys.argv[2]).begin("left open", hold=sys.argv[3] == "hold")
open(sys.argv[1] + "/by-the-turn", "w").write("half done")
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_turn_is_a_commit_before_and_after_P_01_S2_16(root: Path, store: Store) -> None:
    """history[0] is the state when tracking began, history[i + 1] the state after turn i."""
    session = store.session("s")
    write(root / "a", "0")
    seen = []
    for number in range(1, 4):
        turn = session.begin(f"turn {number}")
        if number == 1:
            seen.append(on_disk(root))
        write(root / "a", str(number))
        turn.end()
        seen.append(on_disk(root))
    commits = line(store, "s")
    assert [commit["trailers"].get("Turn") for commit in commits] == [None, "1", "2", "3"]
    for commit, files in zip(commits, seen, strict=True):
        assert_equal(store, commit["commit"], files)


def test_the_root_node_is_the_tree_when_tracking_began_S3_07(root: Path) -> None:
    """S3-07, C23: not an empty one, and undoing everything ends there."""
    write(root / "there before", "x")
    with Store.open(root, create=True) as store:
        first = line(store, "shell")
        assert [commit["trailers"]["Kind"] for commit in first] == ["baseline"]
        assert first[0]["parents"] == []
        assert_equal(store, first[0]["commit"], on_disk(root))
        session = store.session("shell")
        with session.turn("change it"):
            write(root / "there before", "y")
        session.move(session.plan_undo())
        assert on_disk(root) == in_commit(store, first[0]["commit"]) == {b"there before": (b"100644", b"x")}


def test_what_a_shell_command_did_is_found_by_scan_G_02(root: Path, store: Store) -> None:
    write(root / "kept", "kept")
    write(root / "doomed", "x")
    with store.session("s").turn("run a script") as turn:
        script = "mkdir -p out && seq 1000 > out/numbers && rm doomed && chmod +x kept && ln -s out/numbers latest"
        subprocess.run(["sh", "-c", script], cwd=root, check=True)
    assert turn.commit is not None
    assert touched(store, turn.commit) == {b"out/numbers": "A", b"doomed": "D", b"kept": "M", b"latest": "A"}
    assert_equal(store, turn.commit, on_disk(root))
    assert record(store, turn.commit)["found_by"] == "scanned"


def test_a_shell_command_in_a_turn_of_named_files_makes_it_scan_G_02(root: Path, store: Store) -> None:
    turn = store.session("s").begin("edit, then run a formatter")
    turn.touch(root / "named")
    write(root / "named", "x")
    turn.touch(shell=True)
    write(root / "by the formatter", "y")
    commit = turn.end()
    assert touched(store, commit) == {b"named": "A", b"by the formatter": "A"}
    assert record(store, commit)["found_by"] == "scanned"


def test_a_turn_of_named_files_records_those_and_leaves_the_rest_to_the_user(root: Path, store: Store) -> None:
    session = store.session("s")
    turn = session.begin("edit one file")
    turn.touch(root / "agent")
    write(root / "agent", "by the agent")
    write(root / "user", "typed meanwhile")
    commit = turn.end()
    assert touched(store, commit) == {b"agent": "A"}
    assert record(store, commit)["found_by"] == "named"
    session.begin("next").end()
    assert kinds(store, "s")[-3:] == ["turn", "edits", "turn"]
    assert touched(store, line(store, "s")[-2]["commit"]) == {b"user": "A"}


@pytest.mark.parametrize("named", [False, True])
def test_many_edits_of_one_file_in_one_turn_are_one_change_G_07(root: Path, store: Store, named: bool) -> None:
    """G-07: and one undo takes them all back."""
    write(root / "file", "before\n")
    session = store.session("s")
    turn = session.begin("edit again and again")
    for number in range(20):
        if named:
            turn.touch(root / "file")
        write(root / "file", f"edit {number}\n" * (number + 1))
        if number % 7 == 3:
            (root / "file").unlink()
    commit = turn.end()
    assert touched(store, commit) == {b"file": "M"}
    assert_equal(store, commit, on_disk(root))
    assert git(store.shadow.git_dir, "show", f"{commit.hex()}^:file") == b"before\n"
    session.move(session.plan_undo())
    assert (root / "file").read_text() == "before\n"


def test_an_edit_undone_within_the_turn_is_no_change_G_07(root: Path, store: Store) -> None:
    write(root / "file", "same")
    with store.session("s").turn("there and back") as turn:
        write(root / "file", "different")
        write(root / "file", "same")
        write(root / "passing", "x")
        (root / "passing").unlink()
    assert turn.commit is not None
    assert touched(store, turn.commit) == {}


def test_a_plain_folder_without_git_is_enough_G_22(root: Path, tmp_path: Path) -> None:
    """G-22: no repository of the user's, and no git program: recording, undo and redo need neither."""
    write(root / "a", "1")
    code = """
import os
import sys
from snapstore import Store
with Store.open(sys.argv[1], create=True) as store:
    session = store.session("s")
    with session.turn("without git") as turn:
        open(sys.argv[1] + "/b", "w").write("2")
    session.move(session.plan_undo())
    assert os.listdir(sys.argv[1]) == ["a"]
    session.move(session.plan_redo())
    print(turn.commit.hex())
"""
    nowhere = tmp_path / "empty"
    nowhere.mkdir()
    done = child(code, root, environment={"PATH": str(nowhere)})
    assert done.returncode == 0, done.stderr.decode()
    with Store.open(root) as store:
        assert_equal(store, done.stdout.decode().strip(), on_disk(root))
        assert_whole(store)


def test_edits_between_turns_become_their_own_commit_by_the_user(root: Path, store: Store) -> None:
    session = store.session("s")
    write(root / "file", "one\n")
    with session.turn("by the agent", agent="claude"):
        write(root / "file", "one\ntwo\n")
    write(root / "file", "one\ntwo\nthree\n")
    with session.turn("again by the agent", agent="claude"):
        write(root / "file", "one\ntwo\nthree\nfour\n")
    commits = line(store, "s")
    assert [commit["trailers"]["Kind"] for commit in commits] == ["baseline", "turn", "edits", "turn"]
    agent, user = commits[1]["author"], commits[2]["author"]
    assert agent == "claude <claude@snapstore>"
    assert user != agent
    assert commits[0]["author"] == user
    # P-02: blame answers "which turn, or was it me"
    blame = git(store.shadow.git_dir, "blame", "--line-porcelain", tip(store, "s"), "--", "file").decode()
    authors = re.findall(r"^author (.*)$", blame, re.MULTILINE)
    me = user.partition(" <")[0]
    assert authors == [me, "claude", me, "claude"]


def test_the_user_is_who_their_git_says(root: Path, nobodys_home: Path) -> None:
    (nobodys_home / ".gitconfig").write_text("[user]\n\tname = Grace Hopper\n\temail = grace@example.com\n")
    with Store.open(root, create=True) as store:
        assert line(store, "shell")[0]["author"] == "Grace Hopper <grace@example.com>"


def test_a_turn_that_changed_nothing_is_still_a_commit(root: Path, store: Store) -> None:
    write(root / "a", "1")
    session = store.session("s")
    before = session.begin("look around").end(replies=["I looked."])
    after = session.begin("look again").end(replies=["Still the same."])
    assert kinds(store, "s") == ["baseline", "turn", "turn"]
    assert touched(store, before) == touched(store, after) == {}
    assert record(store, after)["replies"] == ["Still the same."]
    assert record(store, after)["prompt"] == "look again"


def test_no_edits_commit_where_nothing_differs(root: Path, store: Store) -> None:
    session = store.session("s")
    for number in range(3):
        with session.turn("work"):
            write(root / "a", str(number))
        os.utime(root / "a")  # touched by nobody's edit
    assert kinds(store, "s") == ["baseline", "turn", "turn", "turn"]


def test_a_cancelled_turn_leaves_its_changes_to_the_next_edits(root: Path, store: Store) -> None:
    session = store.session("s")
    turn = session.begin("never mind")
    write(root / "left behind", "x")
    turn.cancel()
    assert (root / "left behind").read_text() == "x"
    with pytest.raises(Unknown):
        session.end()
    with pytest.raises(Unknown):
        session.cancel()
    session.begin("next").end()
    commits = line(store, "s")
    assert [commit["trailers"]["Kind"] for commit in commits] == ["baseline", "edits", "turn"]
    assert touched(store, commits[1]["commit"]) == {b"left behind": "A"}
    assert "never mind" not in json.dumps(commits)


def test_touch_and_end_without_an_open_turn_are_refused(root: Path, store: Store) -> None:
    session = store.session("s")
    for action in (session.end, session.cancel, session.open_turn, lambda: session.touch([root / "x"])):
        with pytest.raises(Unknown, match="no turn is open"):
            action()
    assert "s" not in store.sessions()


def test_a_turn_outlives_the_process_that_began_it_S0_04(root: Path, store: Store) -> None:
    """S0-04: begin, touch and end may each come from a process of their own, as an agent's hooks do."""
    steps = [
        "session.begin('across processes', agent='codex')",
        "session.touch([root + '/file'])",
        "open(root + '/file', 'w').write('x'); session.touch([root + '/file'], after=True)",
        "print(session.end(replies=['done']).hex())",
    ]
    for step in steps:
        opening = "import sys; from snapstore import Store; root = sys.argv[1]; session = Store.open(root).session('s')"
        done = child(f"{opening}; {step}", root)
        assert done.returncode == 0, done.stderr.decode()
    commit = done.stdout.decode().strip()
    assert_equal(store, commit, on_disk(root))
    said = record(store, commit)
    assert (said["status"], said["found_by"], said["agent"]) == ("done", "named", "codex")
    # one small JSON document a session while the turn was open, gone now
    assert os.listdir(f"{store.state}/open") == []


def test_a_turn_whose_process_was_killed_is_closed_as_interrupted_by_the_next_G_37(root: Path, store: Store) -> None:
    said: list[str] = []
    with living_child(BEGIN_AND_WAIT, root, "s", "hold") as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    with Store.open(root, say=said.append) as again:
        turn = again.session("s").begin("the next prompt")
        write(root / "later", "x")
        turn.end()
        commits = line(again, "s")
        assert [commit["trailers"]["Kind"] for commit in commits] == ["baseline", "turn", "turn"]
        left, following = commits[1:]
        assert left["record"]["status"] == "interrupted"
        assert left["record"]["prompt"] == "left open"
        assert touched(again, left["commit"]) == {b"by-the-turn": "A"}
        assert touched(again, following["commit"]) == {b"later": "A"}
        assert any("interrupted" in text for text in said)
        assert_whole(again)


def test_a_turn_that_no_process_holds_is_closed_as_interrupted_too_G_37(root: Path, store: Store) -> None:
    session = store.session("s")
    session.begin("first")
    write(root / "a", "1")
    session.begin("second")
    write(root / "b", "2")
    session.end()
    first, second = line(store, "s")[1:]
    assert (first["record"]["status"], second["record"]["status"]) == ("interrupted", "done")
    assert touched(store, first["commit"]) == {b"a": "A"}
    assert touched(store, second["commit"]) == {b"b": "A"}


def test_an_exception_in_the_block_closes_the_turn_as_interrupted_G_37(root: Path, store: Store) -> None:
    with pytest.raises(KeyboardInterrupt), store.session("s").turn("stopped"):
        write(root / "a", "1")
        raise KeyboardInterrupt
    last = line(store, "s")[-1]
    assert last["record"]["status"] == "interrupted"
    assert touched(store, last["commit"]) == {b"a": "A"}


def test_begin_while_a_living_process_holds_the_turn_is_refused(root: Path, store: Store) -> None:
    with living_child(BEGIN_AND_WAIT, root, "s", "hold") as process:
        with pytest.raises(Busy, match=str(process.pid)) as caught:
            store.session("s").begin("me too")
        assert caught.value.status == 11
        # another session is free to begin
        store.session("other").begin("elsewhere").end()
        # nor may another end or cancel it under its holder: `run` would find its turn gone
        for close in (store.session("s").end, store.session("s").cancel):
            with pytest.raises(Busy):
                close()
    store.session("s").end()  # the holder is dead: anyone may
    assert kinds(store, "s") == ["baseline", "turn"]


def test_a_process_number_used_again_does_not_hold_the_turn(root: Path, store: Store) -> None:
    """The holder's number belongs to someone else by now: its start mark tells."""
    with living_child(BEGIN_AND_WAIT, root, "s", "hold"):
        pass
    path = Path(store.state) / "open" / "s.json"
    document = json.loads(path.read_bytes())
    document["owner"][0] = os.getppid()
    path.write_text(json.dumps(document))
    try:
        store.session("s").begin("next")
    except SnapstoreError as error:  # a store may well refuse a document that was tampered with
        assert error.name == "corrupt"


@pytest.mark.parametrize("name", ["s-1", "a.b", "UPPER", "naïve", "x" * 200, "0", "main"])
def test_sessions_may_have_any_harmless_name(root: Path, store: Store, name: str) -> None:
    if len(os.fsencode(name)) > 200:
        pytest.skip("beyond the limit")
    with store.session(name).turn("hello") as turn:
        write(root / "a", "1")
    assert turn.commit is not None
    assert store.sessions() == sorted({name, "shell"})
    assert store.active_session() == name
    assert tip(store, name) == turn.commit.hex()
    assert_whole(store)


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "../x", "-rf", "a\0b", "x" * 300, "a.lock", "@", "a..b", "a b", "@{u}", "a\nb", "\x1b[31m"],
)
def test_sessions_with_dangerous_names_are_refused(store: Store, name: str) -> None:
    with pytest.raises(Unsafe) as caught:
        store.session(name)
    assert caught.value.status == 15
    assert len(str(caught.value)) < 200
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("name", ["refs~1", "a:b", "a?", "a*", "a[", "a\\b", "a^", "\u202ename", ".hidden", "end."])
def test_sessions_with_names_that_git_refuses_are_refused(store: Store, name: str) -> None:
    with pytest.raises(Unsafe):
        store.session(name)


def test_paths_outside_the_root_or_in_git_folders_cannot_be_named(root: Path, store: Store, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (root / "way out").symlink_to(outside)
    turn = store.session("s").begin("mischief")
    for path in (
        outside / "x",
        root / ".." / "x",
        root / "way out" / "x",
        root / ".git" / "config",
        root / "sub" / ".GIT" / "hooks" / "x",
        root,
        "/etc/passwd",
    ):
        with pytest.raises(Unsafe):
            turn.touch(path)
    turn.cancel()


def test_sequence_numbers_are_never_used_twice_S3_06(root: Path, store: Store) -> None:
    session = store.session("s")
    session.begin("cancelled")
    session.cancel()
    session.begin("interrupted")
    write(root / "a", "1")
    session.begin("ended").end()
    write(root / "b", "between")
    session.begin("cancelled too")
    session.cancel()
    with Store.open(root) as again:
        again.session("s").begin("by another").end()
    store.session("other").begin("has its own numbers").end()
    # its document lost, the session reads its numbers from its refs
    (Path(store.state) / "sessions" / "s.json").unlink(missing_ok=True)
    with Store.open(root) as again:
        again.session("s").begin("after the loss").end()
    numbers = [int(commit["trailers"]["Seq"]) for commit in line(store, "s")]
    assert numbers == list(range(len(numbers)))
    assert [int(commit["trailers"]["Seq"]) for commit in line(store, "other")] == [0, 1]
    turns = [commit["trailers"]["Turn"] for commit in line(store, "s") if "Turn" in commit["trailers"]]
    assert turns == [str(number + 1) for number in range(len(turns))]


def test_a_line_that_goes_on_from_before_its_tip_gets_a_branch_of_its_own(root: Path, store: Store) -> None:
    """With the cursor moved back (as undo will), the new turn starts a branch; the old ref stays; numbers go on."""
    session = store.session("s")
    for number in range(3):
        with session.turn(f"turn {number + 1}"):
            write(root / "a", str(number))
    old_tip = tip(store, "s")
    second = line(store, "s")[2]["commit"]
    git(store.shadow.git_dir, "symbolic-ref", "--delete", "refs/snapstore/cursor/s", may_fail=True)
    git(store.shadow.git_dir, "update-ref", "--no-deref", "refs/snapstore/cursor/s", second)
    write(root / "a", "1")  # as it was after turn 2
    with Store.open(root) as again, again.session("s").turn("another way"):
        write(root / "a", "other")
    heads = git(store.shadow.git_dir, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/s").decode()
    tips = {name: oid for oid, name in (row.split(" ") for row in heads.splitlines())}
    assert len(tips) == 2
    assert tips["refs/heads/s/main"] == old_tip
    commits = line(store, "s")
    assert commits[-1]["commit"] in tips.values()
    assert commits[-1]["trailers"]["Turn"] == "3"
    assert [commit["commit"] for commit in commits[:3]][-1] == second
    every = git(store.shadow.git_dir, "log", "--format=%(trailers:key=Snapstore-Seq,valueonly)", *tips.values())
    numbers = every.decode().split()
    assert len(numbers) == len(set(numbers))
    assert_whole(store)


def test_the_message_is_for_people_first(root: Path, store: Store) -> None:
    """Subject = first line of the prompt; body = the changed files; trailers last."""
    write(root / "changed", "1")
    write(root / "gone", "1")
    write(root / "kind", "1")
    turn = store.session("s").begin("\n  Add a login function \n\nwith all the trimmings\n", agent="claude")
    write(root / "changed", "2")
    (root / "gone").unlink()
    (root / "kind").unlink()
    (root / "kind").symlink_to("changed")
    write(root / "new file", "1")
    commit = turn.end()
    text = git(store.shadow.git_dir, "log", "-1", "--format=%B", commit.hex()).decode()
    assert text.strip("\n") == (
        "Add a login function\n\n"
        "with all the trimmings\n\n"
        "M changed\nD gone\nT kind\nA new file\n\n"
        "Snapstore-Kind: turn\nSnapstore-Session: s\nSnapstore-Turn: 1\nSnapstore-Seq: 1\nSnapstore-Agent: claude"
    )
    assert record(store, commit)["prompt"] == "\n  Add a login function \n\nwith all the trimmings\n"


def message_of(store: Store, commit: bytes) -> str:
    return git(store.shadow.git_dir, "log", "-1", "--format=%B", commit.hex()).decode().strip("\n")


def test_a_message_holds_the_whole_prompt_and_a_short_answer(store: Store) -> None:
    """M-15: for people who read the history with git."""
    turn = store.session("s").begin("Mend it\n\tstep one\x1b[31m\n\n\nstep two")
    commit = turn.end(replies=["I look.", "Mended.\nAll of it.\n\nDetails follow."])
    assert message_of(store, commit).startswith(
        "Mend it\n\n    step one [31m\n\n\nstep two\n\nAnswer: Mended. All of it. …\n\nSnapstore-Kind: turn\n"
    )
    long = "word " * 100
    commit = store.session("s").begin(long).end(replies=["x" * 1000])
    subject, again, answer, _ = message_of(store, commit).split("\n\n")
    assert (len(subject), subject[-1]) == (200, "…")
    assert again == long.strip()
    assert answer == "Answer: " + "x" * 400 + " …"


def test_a_huge_prompt_is_cut_in_the_message_only(store: Store) -> None:
    prompt = "First\n" + "y" * 100_000
    commit = store.session("s").begin(prompt).end()
    text = message_of(store, commit)
    assert len(text) < 70_000 and "(the whole prompt is in the record of the turn)" in text
    assert record(store, commit)["prompt"] == prompt


@pytest.mark.parametrize(
    "prompt",
    [
        "Snapstore-Kind: baseline",
        "Snapstore-Kind: edits\nSnapstore-Session: other\nSnapstore-Turn: 99\nSnapstore-Seq: 1000000",
        "harmless\n\nSnapstore-Kind: baseline\nSnapstore-Turn: 99",
        "harmless\r\n\r\nSnapstore-Kind: baseline",
        "harmless\x0b\x0bSnapstore-Kind: baseline\u2028\u2028Snapstore-Turn: 99",
        "x\x00\n\nSnapstore-Turn: 99",
        "---\nSnapstore-Turn: 99",
        "",
        "   \n\t\n",
        "\x1b[31mred\x1b]0;title\x07",
        "\u202egnirts desrever",
        "\ud800 lone surrogate",
        "é" * 5000,
        "# not a comment",
    ],
)
def test_a_prompt_cannot_forge_trailers_nor_reach_the_terminal(root: Path, store: Store, prompt: str) -> None:
    session = store.session("s")
    turn = session.begin(prompt, agent="evil\nSnapstore-Turn: 98\n\nSnapstore-Kind: x")
    write(root / "Snapstore-Turn: 97", "a file can try too\n")
    write(root / "x\n\nSnapstore-Turn: 96", "and another")
    commit = turn.end()
    session.begin("next").end()
    forged, following = line(store, "s")[1:]
    assert forged["trailers"]["Kind"] == "turn"
    assert forged["trailers"]["Session"] == "s"
    assert (forged["trailers"]["Turn"], forged["trailers"]["Seq"]) == ("1", "1")
    assert (following["trailers"]["Turn"], following["trailers"]["Seq"]) == ("2", "2")
    assert forged["subject"]
    assert all(character.isprintable() or character == "\n" for character in forged["body"])
    assert len(forged["subject"]) <= 200
    assert record(store, commit)["prompt"] == prompt
    node = History(session).node(commit)
    assert (node.kind, node.turn, node.seq, node.session) == ("turn", 1, 1, "s")
    assert_whole(store)


def test_the_record_keeps_the_conversation_S0_07(root: Path, store: Store) -> None:
    lines = ['{"type":"user","text":"héllo \\ud83d"}', "\x00\x1b", "x" * 300_000]
    turn = store.session("s").begin("talk")
    turn.reply("first")
    turn.reply("second")
    commit = turn.end(thinking=["hmm"], tool_calls=[{"type": "Edit", "filePath": "a"}], lines=lines)
    said = record(store, commit)
    assert said["replies"] == ["first", "second"]
    assert said["thinking"] == ["hmm"]
    assert said["tool_calls"] == [{"type": "Edit", "filePath": "a"}]
    assert said["lines"] == lines
    assert (said["session"], said["turn"], said["seq"], said["status"]) == ("s", 1, 1, "done")


def test_times_are_the_clock_s_and_utc(root: Path) -> None:
    """Turns before 1970 and after 2038 are recorded; the clock may go backwards."""
    now = [1_700_000_000.0]
    with Store.open(root, create=True, clock=lambda: now[0]) as store:
        commits = []
        for started, ended in ((2_208_988_800.5, 2_208_988_801.25), (100.0, 101.0), (-5.0, -4.0)):
            now[0] = started
            turn = store.session("s").begin("tick")
            now[0] = ended
            commits.append(turn.end())
        said = [record(store, commit) for commit in commits]
        assert said[0]["started_at"] == "2040-01-01T00:00:00.500Z"
        assert said[0]["ended_at"] == "2040-01-01T00:00:01.250Z"
        assert said[1]["started_at"] == "1970-01-01T00:01:40.000Z"
        assert said[2]["started_at"] == "1969-12-31T23:59:55.000Z"
        numbers = [int(commit["trailers"]["Seq"]) for commit in line(store, "s")]
        assert numbers == [0, 1, 2, 3]
        assert_whole(store)


def test_nothing_is_printed_by_the_library(root: Path) -> None:
    code = """
import sys
from snapstore import Store
with Store.open(sys.argv[1], create=True) as store:
    with store.session("s").turn("quiet"):
        open(sys.argv[1] + "/x", "w").write("1")
    store.session("s").begin("left open")
    store.session("s").begin("closes it").end()
"""
    done = subprocess.run([sys.executable, "-c", code, str(root)], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


def test_a_turn_that_changes_more_folders_than_are_kept_in_memory(root: Path, store: Store) -> None:
    """What a step has written is read again before it is in the store, however much of it there is."""
    for number in range(4500):
        write(root / f"{number}/file", "0")
    session = store.session("s")
    turn = session.begin("all of them")
    for number in range(4500):
        write(root / f"{number}/file", f"1 {number}")
    commit = turn.end()
    assert len(touched(store, commit)) == 4500
