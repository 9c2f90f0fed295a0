"""The commands as a person or a program meets them: real processes, what they print and how they end."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from commands import PROGRAM, a_turn, assert_record, snap, snap_json, write

from snapstore import Store
from snapstore.surface.records.nodes import DiffRecord, LogRecord, NodeRecord, ShowRecord
from snapstore.surface.records.status import CheckRecord, InitRecord, OpenTurnRecord, StatusRecord

# init


def test_init_says_what_was_taken_where_the_store_is_and_what_to_do_next(root: Path, nobodys_home: Path) -> None:
    write(root, a="1", b="2")
    done = snap(root, "init")
    assert f"Watching over {root} from now on." in done.stdout
    assert "2 files" in done.stdout
    assert str(nobodys_home / "stores" / "project-") in done.stdout
    assert "snapstore run -- CMD" in done.stdout
    assert done.stderr == ""


def test_init_in_json_is_one_record(root: Path) -> None:
    write(root, a="1")
    document = snap_json(root, "init", "--json")
    assert_record(InitRecord, document)
    assert document["created"] is True
    assert (document["files"], document["left_out"], document["root"]) == (1, [], str(root))
    assert snap_json(root, "init", "--json")["created"] is False


def test_init_names_the_files_it_left_out(root: Path) -> None:
    """G-30: every file left out is named."""
    write(root, small="1", large="x" * 2000)
    done = snap(root, "init", "--max-file-size", "1kB")
    assert re.search(r"left out\s+1 file\n\s+large\s+larger than", done.stdout)


def test_init_again_says_so_and_can_change_the_limit(root: Path) -> None:
    snap(root, "init")
    assert "already" in snap(root, "init").stdout
    assert "5.0 GB per file" in snap(root, "init", "--max-file-size", "5GB").stdout
    with Store.open(root) as store:
        assert store.header.max_file_size == 5_000_000_000
    assert snap_json(root, "init", "--max-file-size=0", "--json")["max_file_size"] == 0


def test_init_without_a_folder_takes_the_top_of_the_git_checkout(root: Path, git: Callable[..., str]) -> None:
    git(root, "init", "-q")
    (root / "deep").mkdir()
    assert snap_json(root / "deep", "init", "--json")["root"] == str(root)


def test_init_takes_a_named_folder_as_it_is(root: Path, git: Callable[..., str]) -> None:
    git(root, "init", "-q")
    (root / "deep").mkdir()
    assert snap_json(root, "init", "deep", "--json")["root"] == str(root / "deep")


def test_a_moved_root_is_adopted_with_its_history(root: Path) -> None:
    write(root, a="1")
    a_turn(root)
    moved = root.with_name("elsewhere")
    assert "--adopt" not in snap_json(root.parent, "log", "--json", status=13)["hint"], "nothing is gone"
    root.rename(moved)
    adopting = f"snapstore init --adopt --from {root}"
    assert adopting in snap_json(moved, "log", "--json", status=13)["hint"]
    assert snap_json(moved, "init", "--adopt", "--json", status=16)["error"] == "unknown"
    snap(moved, "init")  # too late: it has one of its own now
    refused = snap_json(moved, "init", "--adopt", "--from", str(root), "--json", status=13)
    own = snap_json(moved, "status", "--json")["store"]
    assert own in refused["hint"]
    Path(own).rename(root.with_name("away"))
    done = snap(moved, "init", "--adopt", "--from", str(root))
    assert f"Watching over {moved} again, which was {root} before." in done.stdout
    assert "Write a poem" in snap(moved, "log").stdout


# turn


def test_a_turn_in_pieces_is_recorded_with_its_prompt_reply_and_files(root: Path) -> None:
    begun = snap(root, "turn", "begin", "-m", "Write a poem", "--agent", "poet")
    assert "Turn 1 of session shell is open." in begun.stdout
    assert f"watching over {root} from now on" in begun.stderr
    snap(root, "turn", "touch", "poem")
    write(root, poem="roses\n")
    ended = snap(root, "turn", "end", "--reply", "Here it is")
    assert ended.stdout == "Turn 1: 1 file changed: poem  (snapstore show 1)\n"
    shown = snap_json(root, "show", "1", "--json")
    assert (shown["prompt"], shown["replies"], shown["agent"]) == ("Write a poem", ["Here it is"], "poet")
    assert (shown["found_by"], shown["files"][0]["path"]) == ("named", "poem")


def test_every_piece_of_a_turn_has_its_json(root: Path) -> None:
    begun = snap_json(root, "turn", "begin", "-m", "Go", "--json")
    assert_record(OpenTurnRecord, begun)
    assert (begun["turn"], begun["status"], begun["prompt"]) == (1, "open", "Go")
    touched = snap_json(root, "turn", "touch", "--json", "a", "b")
    assert_record(OpenTurnRecord, touched)
    assert touched["named"] == ["a", "b"]
    write(root, a="1")
    ended = snap_json(root, "turn", "end", "--json")
    assert_record(NodeRecord, ended)
    assert (ended["turn"], [file["change"] for file in ended["files"]]) == (1, ["A"])
    snap(root, "turn", "begin")
    cancelled = snap_json(root, "turn", "cancel", "--json")
    assert_record(OpenTurnRecord, cancelled)
    assert cancelled["status"] == "cancelled"


def test_a_shell_tool_makes_the_turn_scan(root: Path) -> None:
    """G-02: what a shell command changed is caught."""
    snap(root, "turn", "begin")
    snap(root, "turn", "touch", "named")
    snap(root, "turn", "touch", "--shell")
    write(root, named="1", unnamed="2")
    ended = snap_json(root, "turn", "end", "--json")
    assert ([file["path"] for file in ended["files"]], ended["found_by"]) == (["named", "unnamed"], "scanned")


def test_a_turn_with_named_files_scans_when_told(root: Path) -> None:
    snap(root, "turn", "begin")
    snap(root, "turn", "touch", "named")
    write(root, named="1", unnamed="2")
    assert snap_json(root, "turn", "end", "--scan", "--json")["found_by"] == "scanned"


def test_what_changed_before_a_turn_is_told_at_its_begin(root: Path) -> None:
    """C16: work between turns is a commit of its own."""
    snap(root, "init")
    write(root, mine="1")
    assert "Edits: 1 file" in snap(root, "turn", "begin").stdout


def test_a_cancelled_turn_leaves_its_files_and_becomes_edits(root: Path) -> None:
    snap(root, "turn", "begin")
    write(root, a="1")
    assert "stays on disk" in snap(root, "turn", "cancel").stdout
    assert (root / "a").read_text() == "1"
    snap(root, "turn", "begin")
    assert [node["kind"] for node in snap_json(root, "log", "--json")["nodes"]] == ["baseline", "edits"]


def test_quiet_says_nothing(root: Path) -> None:
    done = snap(root, "turn", "begin", "-q")
    assert (done.stdout, done.stderr) == ("", "")
    assert snap(root, "turn", "end", "--quiet").stdout == ""


def test_a_turn_that_changed_nothing_claims_nothing(root: Path) -> None:
    """G-23: success is reported only for what changed."""
    snap(root, "turn", "begin")
    assert snap(root, "turn", "end").stdout.startswith("Turn 1: no file changed")


def test_a_turn_left_open_is_closed_as_interrupted_and_shown_so(root: Path) -> None:
    """G-37: closed by the next event, with its changes kept."""
    snap(root, "turn", "begin", "-m", "Left alone")
    write(root, a="1")
    assert "interrupted" in snap(root, "turn", "begin").stderr
    assert "Left alone [interrupted]" in snap(root, "log").stdout
    shown = snap_json(root, "show", "1", "--json")
    assert (shown["status"], [file["path"] for file in shown["files"]]) == ("interrupted", ["a"])


def test_the_first_turn_of_a_named_session_makes_no_other_session(root: Path) -> None:
    snap(root, "turn", "begin", "--session", "s1")
    assert snap_json(root, "status", "--json")["sessions"] == ["s1"]


# status


def test_status_says_where_you_are_and_what_changed_since(root: Path) -> None:
    a_turn(root)
    write(root, mine="1", poem="violets\n")
    said = snap(root, "status").stdout
    assert re.search(r"^root\s+" + re.escape(str(root)) + "$", said, re.M)
    assert re.search(r"^at\s+turn 1\s+[0-9a-f]{8}\s.*Write a poem$", said, re.M)
    assert "2 files changed since:\n  A  mine\n  M  poem\n" in said


def test_status_in_json_is_one_record(root: Path) -> None:
    a_turn(root)
    write(root, mine="1")
    snap(root, "turn", "begin", "-m", "Next", "--session", "other")
    document = snap_json(root, "status", "--session", "shell", "--json")
    assert_record(StatusRecord, document)
    assert_record(NodeRecord, document["cursor"])
    assert document["edits"] == ["mine"]
    assert [(turn["session"], turn["prompt"]) for turn in document["open_turns"]] == [("other", "Next")]
    assert document["cursor"]["turn"] == 1
    assert document["sessions"] == ["other", "shell"]


def test_status_names_open_turns(root: Path) -> None:
    snap(root, "turn", "begin", "-m", "Still at it", "--agent", "poet")
    assert re.search(r"^open\s+a turn by poet, .*Still at it$", snap(root, "status").stdout, re.M)


# log, show, diff


def test_log_lists_newest_first_for_people_and_oldest_first_for_programs(root: Path) -> None:
    a_turn(root, "First")
    write(root, mine="1")
    a_turn(root, "Second", "violets\n")
    rows = snap(root, "log").stdout.splitlines()
    assert [re.sub(r"\s+[0-9a-f]{8}\s+.*?ago\s*|\s+[0-9a-f]{8}\s+just now\s*", " ", row) for row in rows] == [
        "@    2 1 file  Second",
        "     · 1 file  edits",
        "     1 1 file  First",
        "     · baseline",
    ]
    document = snap_json(root, "log", "--json")
    assert_record(LogRecord, document)
    assert [node["label"] for node in document["nodes"]] == ["Baseline", "Turn 1", "Edits", "Turn 2"]


def test_log_can_be_cut_and_names_files_on_demand(root: Path) -> None:
    a_turn(root, "First")
    a_turn(root, "Second", "violets\nare\n")
    cut = snap(root, "log", "-n", "1", "--stat").stdout
    assert "Second" in cut
    assert "First" not in cut
    assert re.search(r"M\s+poem\s+\+2 -1", cut)
    assert len(snap_json(root, "log", "-n", "1", "--json")["nodes"]) == 1
    assert len(snap_json(root, "log", "-n", "0", "--json")["nodes"]) == 3


def test_log_counts_lines_only_when_asked(root: Path) -> None:
    a_turn(root)
    assert snap_json(root, "log", "--json")["nodes"][1]["files"][0]["added"] is None
    assert snap_json(root, "log", "--json", "--stat")["nodes"][1]["files"][0]["added"] == 1


def test_show_gives_the_whole_turn_and_its_patch(root: Path) -> None:
    snap(root, "turn", "begin", "-m", "Write a poem\n\nwith two lines", "--agent", "poet")
    write(root, poem="roses\n")
    snap(root, "turn", "end", "-m", "Done")
    said = snap(root, "show", "1").stdout
    assert re.match(r"Turn 1  [0-9a-f]{40}\nsession shell · branch main · #1 · by poet\n", said)
    assert "    Write a poem\n\n    with two lines\n" in said
    assert "  > Done\n" in said
    assert "1 file changed, found by scan\n  A  poem  +1\n" in said
    assert "+++ b/poem\n@@ -0,0 +1 @@\n+roses\n" in said
    document = snap_json(root, "show", "--json")
    assert_record(ShowRecord, document)
    assert document["patch"].endswith("+roses\n")
    assert (document["files"][0]["added"], document["files"][0]["removed"]) == (1, 0)


def test_every_kind_of_address_shows_its_turn(root: Path) -> None:
    a_turn(root, "First")
    a_turn(root, "Second", "violets\n")
    commit = snap_json(root, "show", "2", "--json")["commit"]
    for address in ("2", "#2", "@", commit, commit[:10]):
        assert snap_json(root, "show", address, "--json")["commit"] == commit
    assert snap_json(root, "show", "0", "--json")["kind"] == "baseline"


def test_show_tells_how_your_own_repository_moved(root: Path, git: Callable[..., str]) -> None:
    """G-29: a turn that moved the user's own HEAD, index or branches says so."""
    git(root, "init", "-q", "-b", "main")
    write(root, a="1")
    git(root, "add", "a")
    git(root, "commit", "-qm", "first")
    snap(root, "turn", "begin")
    git(root, "checkout", "-qb", "topic")
    write(root, b="2")
    git(root, "add", "b")
    assert "your own git repository changed" in snap(root, "turn", "end").stdout
    said = snap(root, "show").stdout
    assert "HEAD went from main to topic" in said
    assert "branch topic was created at " in said
    assert "the index changed" in said
    assert snap_json(root, "show", "--json")["user_git"]["index"] is True


def test_show_names_what_was_left_out_and_first_seen(root: Path) -> None:
    """G-25 and G-30 as a reader meets them."""
    write(root, **{".gitignore": "secret\n", "secret": "1"})
    snap(root, "init", "--max-file-size", "1kB")
    snap(root, "turn", "begin")
    write(root, **{".gitignore": "", "large": "x" * 2000})
    ended = snap(root, "turn", "end").stdout
    assert "left out: large (larger than max_file_size)" in ended
    assert "first seen, earlier state unknown: secret" in ended
    assert "[1 left out]" in snap(root, "log").stdout
    said = snap(root, "show").stdout
    assert "Left out:\n  large  larger than max_file_size\n" in said
    assert "earlier state unknown:\n  secret\n" in said
    document = snap_json(root, "show", "--json")
    assert document["left_out"] == [{"path": "large", "why": "larger than max_file_size"}]
    assert document["first_seen"] == ["secret"]


def test_diff_without_a_word_is_from_here_to_the_disk(root: Path) -> None:
    a_turn(root)
    assert snap(root, "diff").stdout == ""
    write(root, poem="violets\n", new="1\n")
    said = snap(root, "diff").stdout
    assert "-roses\n+violets\n" in said
    assert "new file mode 100644" in said
    document = snap_json(root, "diff", "--json")
    assert_record(DiffRecord, document)
    assert document["patch"] == said
    assert (document["from"]["turn"], document["to"]["commit"]) == (1, None)
    assert [(file["path"], file["added"], file["removed"]) for file in document["files"]] == [
        ("new", 1, 0),
        ("poem", 1, 1),
    ]


def test_diff_between_turns_and_of_some_paths(root: Path) -> None:
    (root / "sub").mkdir()
    snap(root, "init")
    snap(root, "run", "--", "sh", "-c", "echo 1 > a; echo 1 > sub/b")
    snap(root, "run", "--", "sh", "-c", "echo 2 > a; echo 2 > sub/b")
    assert "-1\n+2\n" in snap(root, "diff", "1", "2").stdout
    assert snap(root, "diff", "2").stdout == ""
    paths = [file["path"] for file in snap_json(root, "diff", "--json", "1", "2", "--", "sub")["files"]]
    assert paths == ["sub/b"]
    assert [file["path"] for file in snap_json(root / "sub", "diff", "--json", "1", "--", "b")["files"]] == ["sub/b"]
    assert len(snap_json(root / "sub", "diff", "--json", "0", "2", "--", "..")["files"]) == 2
    assert snap_json(root / "sub", "-C", "..", "diff", "0", "--json", "--", "a")["files"][0]["path"] == "a"


def test_a_diff_in_a_pipe_can_be_applied(root: Path, git: Callable[..., str], tmp_path: Path) -> None:
    (root / "latin").write_bytes(b"caf\xe9\n\x1b[31m\n")
    snap(root, "init")
    (root / "latin").write_bytes(b"th\xe9\n\x1b[32m\n")
    patch = subprocess.run([*PROGRAM, "diff"], cwd=root, capture_output=True, check=True).stdout
    copy = tmp_path / "copy"
    copy.mkdir()
    (copy / "latin").write_bytes(b"caf\xe9\n\x1b[31m\n")
    git(copy, "apply", stdin=patch)
    assert (copy / "latin").read_bytes() == b"th\xe9\n\x1b[32m\n"
    assert "patch_b64" in snap_json(root, "diff", "--json")


# check, git


def test_check_finds_a_whole_store_whole(root: Path) -> None:
    a_turn(root)
    assert "The store is intact." in snap(root, "check").stdout
    document = snap_json(root, "check", "--read-data", "--json")
    assert_record(CheckRecord, document)
    assert (document["ok"], document["problems"], document["read_data"]) == (True, [], True)


def test_check_names_what_is_damaged_and_ends_with_14(root: Path) -> None:
    a_turn(root)
    with Store.open(root) as store:
        git_dir = Path(store.shadow.git_dir)
    (git_dir / "config").write_text((git_dir / "config").read_text() + "[core]\n\tfsmonitor = evil\n")
    (git_dir / "refs/heads/shell/gone").write_text("1" * 40 + "\n")
    said = snap(root, "check", status=14).stdout
    assert "2 problems:" in said
    assert "fsmonitor" in said
    assert f"refs/heads/shell/gone: object {'1' * 40} is missing" in said
    document = snap_json(root, "check", "--json", status=14)
    assert (document["error"], document["ok"], len(document["problems"])) == ("corrupt", False, 2)
    assert document["message"] == "the store has 2 problems"


def test_git_is_ordinary_git_on_the_shadow_repository(root: Path) -> None:
    """P-02."""
    a_turn(root)
    assert snap(root, "git", "log", "--format=%s %an").stdout == f"Write a poem poet\nBaseline {_user(root)}\n"
    assert snap(root, "git", "show", "HEAD:poem").stdout == "roses\n"
    assert "roses" in snap(root, "git", "blame", "HEAD", "--", "poem").stdout
    snap(root, "git", "fsck", "--strict")


def test_git_gets_every_argument_untouched_and_its_status_is_ours(root: Path) -> None:
    snap(root, "init")
    echo = ["-c", "alias.echo=!printf '%s\\n'", "echo", "--json", "-C", "x", "--session", "--", "--help", "a b"]
    done = snap(root, "git", *echo)
    assert done.stdout.splitlines() == ["--json", "-C", "x", "--session", "--", "--help", "a b"]
    snap(root, "git", "rev-parse", "--verify", "nothing", status=128)


def test_git_ends_quietly_when_its_reader_does(root: Path) -> None:
    (root / "large").write_text("line\n" * 200_000)
    snap(root, "init")
    process = subprocess.Popen([*PROGRAM, "git", "show", "HEAD:large"], cwd=root, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    assert process.wait() == -signal.SIGPIPE


def test_git_ignores_the_callers_git_environment(root: Path, tmp_path: Path, git: Callable[..., str]) -> None:
    """G-34."""
    a_turn(root)
    git(tmp_path, "init", "-q", "other")
    done = snap(root, "git", "rev-parse", "--git-dir", GIT_DIR=str(tmp_path / "other/.git"), GIT_INDEX_FILE="/nowhere")
    assert done.stdout.strip().endswith("store.git")


# What all share


def test_common_options_may_stand_before_or_after_the_command(root: Path) -> None:
    snap(root, "turn", "begin", "--session", "s1")
    outside = root.parent
    for arguments in (
        ["-C", "project", "--session", "s1", "--json", "status"],
        ["status", "--json", "-C", "project", "--session=s1"],
        ["--json", "-Cproject", "status", "--session", "s1"],
        ["-C", "project", "-C", ".", "status", "--session", "s1", "--json"],
    ):
        assert snap_json(outside, *arguments)["session"] == "s1"
    assert snap_json(outside, "-C", "project", "turn", "--session", "s1", "end", "--json")["session"] == "s1"


def test_the_session_comes_from_the_option_else_the_environment_else_the_last_active(root: Path) -> None:
    snap(root, "turn", "begin", "--session", "s1")
    snap(root, "turn", "begin", SNAPSTORE_SESSION="s2")
    snap(root, "turn", "begin")
    snap(root, "turn", "end", "--session", "s1")
    assert snap_json(root, "log", "--json")["session"] == "s1"
    assert snap_json(root, "log", "--json", SNAPSTORE_SESSION="s2")["session"] == "s2"
    assert snap_json(root, "log", "--json", "--session", "shell", SNAPSTORE_SESSION="s2")["session"] == "shell"


def test_every_command_works_from_a_folder_below_the_root(root: Path) -> None:
    """G-15."""
    (root / "deep/er").mkdir(parents=True)
    snap(root, "init")
    snap(root / "deep/er", "turn", "begin")
    write(root, a="1")
    (root / "deep/er/b").write_text("2")
    ended = snap_json(root / "deep/er", "turn", "end", "--json")
    assert [file["path"] for file in ended["files"]] == ["a", "deep/er/b"]
    snap(root / "deep/er", "turn", "begin")
    assert snap_json(root / "deep/er", "turn", "touch", "b", "../c", "--json")["named"] == ["deep/er/b", "deep/c"]


def test_the_version_is_the_packages(root: Path) -> None:
    import snapstore

    assert snap(root, "--version").stdout == f"snapstore {snapstore.__version__}\n"


def _user(root: Path) -> str:
    with Store.open(root) as store:
        return store.user.name


DIES = """
import os
from snapstore import Store
from snapstore.store.journal import Journal
Journal._finish = lambda *_: os._exit(9)
Store.open(".").session("shell").begin("Cut off")
"""


def test_a_change_cut_short_is_finished_by_the_next_command_which_says_so(root: Path) -> None:
    """G-05."""
    for arguments in (["status"], ["status", "--json"]):
        snap(root, "init", "-q")
        assert subprocess.run([sys.executable, "-c", DIES], cwd=root, check=False).returncode == 9
        done = snap(root, *arguments)
        assert done.stderr == "snapstore: finished an interrupted change: begin of a turn in session shell\n"
        if "--json" in arguments:
            document = json.loads(done.stdout)
            assert document["recovery"] == "begin of a turn in session shell"
            assert [turn["prompt"] for turn in document["open_turns"]] == ["Cut off"]
        assert snap_json(root, "status", "--json")["recovery"] is None


def test_a_locale_that_is_not_utf8_means_the_same_files_G_36(root: Path) -> None:
    """An agent's hooks may run in another locale than the terminal: one writes names down and the other reads them."""
    ascii_only = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    names = ["café", os.fsdecode(b"latin\xe9")]
    for name in names:
        (root / name).write_text("old")
    snap(root, "init", "-q")
    for first, second in (({}, ascii_only), (ascii_only, {})):
        snap(root, "turn", "begin", "-m", "write", **first)
        snap(root, "turn", "touch", *names, **first)
        for name in names:
            (root / name).write_text("new")
        assert "2 files changed" in snap(root, "turn", "end", **second).stdout
        snap(root, "undo", "-y", **second)
        assert [(root / name).read_text() for name in names] == ["old", "old"]
    # What is said is said in the locale's own encoding, and what is started keeps its locale.
    said = snap(root, "redo", "-y", **ascii_only).stdout
    assert said.isascii() and "caf\\xe9" in said
    started = snap(root, "run", "-q", "--", "sh", "-c", "echo $LC_ALL$PYTHONUTF8", **ascii_only)
    assert started.stdout.strip() == "POSIX0"
