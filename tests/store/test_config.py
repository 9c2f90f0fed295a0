"""Settings: one file for people, checked and explained; a hook never pays for reading it."""

from __future__ import annotations

import os
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import snap, snap_json
from helpers import all_refs, killed_at, turn, write
from hypothesis import given
from hypothesis import strategies as some
from test_cli_docs import loaded

from snapstore import Store
from snapstore.errors import SnapstoreError, Usage
from snapstore.store import config, log
from snapstore.store.settings import BY_NAME, SETTINGS
from snapstore.store.state import Documents
from snapstore.surface.records.config import Config, ConfigRecord, SettingRecord, faults

FILE = config.FILE
PAGE = (Path(__file__).parents[2] / "docs/settings.md").read_text()


def file_of(root: Path) -> Path:
    with Store.open(root) as store:
        return Path(config.path_of(store))


def said_in_log(root: Path) -> str:
    with Store.open(root) as store:
        return "\n".join(log.last(f"{store.folder}/log"))


# For people


def test_every_setting_is_listed_with_its_value_and_what_it_means(root: Path) -> None:
    """Limits and how long things are kept are among them."""
    snap(root, "init")
    shown = snap(root, "config").stdout
    for setting in SETTINGS:
        assert f"{setting.name} = {setting.spell(setting.default) or '(empty)'}\n" in shown
        assert f"| `{setting.name}` | `{setting.spell(setting.default) or 'empty'}` | {setting.help} |" in PAGE
    document = snap_json(root, "config", "--json")
    ConfigRecord.model_validate(document)
    assert {row["key"]: row["value"] for row in document["settings"]} == {one.name: one.default for one in SETTINGS}
    assert document["problems"] == []
    assert not any(row["set"] for row in document["settings"])
    assert snap(root, "config", "list").stdout == shown


def test_a_setting_is_set_read_and_left_alone_again(root: Path) -> None:
    snap(root, "init")
    assert snap(root, "config", "set", "max_store_size", "2GB").stdout == "max_store_size is 2GB, was 0.\n"
    assert snap(root, "config", "get", "max_store_size").stdout == "2GB\n"
    row = snap_json(root, "config", "get", "max-store-size", "--json")
    SettingRecord.model_validate(row)
    assert (row["value"], row["default"], row["set"]) == (2 * 10**9, 0, True)
    assert snap(root, "config", "unset", "max_store_size", "-q").stdout == ""
    assert snap(root, "config", "get", "max_store_size").stdout == "0\n"


def test_patterns_are_given_one_a_word(root: Path) -> None:
    snap(root, "init")
    snap(root, "config", "set", "never_capture", "*.pem", "my secrets/", "-q")
    assert snap(root, "config", "get", "never_capture").stdout == "*.pem\nmy secrets/\n"
    assert tomllib.loads(file_of(root).read_text()) == {"never_capture": ["*.pem", "my secrets/"]}
    assert "one value" in snap(root, "config", "set", "max_branches", "1", "2", status=2).stderr


def test_the_file_explains_every_setting_and_is_nobodys_business(root: Path) -> None:
    snap(root, "init")
    assert not file_of(root).exists()
    snap(root, "config", "set", "gc_auto", "off")
    text = file_of(root).read_text()
    assert tomllib.loads(text) == {"gc_auto": False}
    for setting in SETTINGS:
        assert f"{setting.name} = " in text
    assert tomllib.loads(text.replace("\n# max_", "\nmax_"))["max_branches"] == 20, "defaults, to be uncommented"
    assert file_of(root).stat().st_mode & 0o777 == 0o600


def test_what_a_person_wrote_stays_to_the_remark(root: Path) -> None:
    snap(root, "init")
    file_of(root).write_text('# mine\nmax_branches = 7 # few\nnever_capture = [\n  "a", # one\n  "b",\n]\n\n# end\n')
    snap(root, "config", "set", "never_capture", "c")
    snap(root, "config", "set", "save_every", "10m")
    snap(root, "config", "unset", "max_branches")
    assert file_of(root).read_text() == (
        '# mine\n# max_branches = 20\nnever_capture = ["c"]\n\n# end\nsave_every = "10m"\n'
    )


@pytest.mark.parametrize(
    ("key", "value", "says"),
    [
        ("max_file_size", "large", "not a size"),
        ("max_branches", "-1", "whole number"),
        ("gc_auto", "maybe", "true nor false"),
        ("gc_grace", "2 fortnights", "not a duration"),
        ("prune_after_days", "soon", "number of days"),
        ("machine_name", "a/b", "not a name"),
        ("machine_name", "x.lock", "git accepts"),
        ("never_capture", "", "patterns"),
    ],
)
def test_a_wrong_value_is_refused_with_what_is_allowed(root: Path, key: str, value: str, says: str) -> None:
    snap(root, "init")
    document = snap_json(root, "config", "set", "--json", key, "--", value, status=2)
    assert document["error"] == "usage"
    assert says in document["message"]
    assert not file_of(root).exists()


def test_an_unknown_setting_is_named_with_the_nearest(root: Path) -> None:
    snap(root, "init")
    for words in (["get", "max_branch"], ["set", "max_branch", "3"], ["unset", "max_branch"]):
        document = snap_json(root, "config", *words, "--json", status=16)
        assert document["hint"] == "Did you mean max_branches?"


def test_init_writes_its_limits_into_the_same_file(root: Path) -> None:
    snap(root, "init", "--max-file-size", "5MB")
    snap(root, "init", "--max-branches", "3")
    assert tomllib.loads(file_of(root).read_text()) == {"max_file_size": "5MB", "max_branches": 3}


# By hand


def test_what_is_written_by_hand_counts_from_the_next_command_on(root: Path, store: Store) -> None:
    path = Path(config.path_of(store))
    path.write_text('max_file_size = "1kB"\n')
    write(root / "large", "x" * 2000)
    turn(store.session("s"), root, small="1")  # a store that was open before sees it too
    assert store.header.max_file_size == 1000
    assert "larger than max_file_size" in snap(root, "status").stdout
    path.unlink()
    with Store.open(root) as again:
        assert again.header.max_file_size == 100 * 10**6


def test_a_broken_file_fails_no_turn_and_the_last_good_value_goes_on(root: Path) -> None:
    snap(root, "init")
    snap(root, "config", "set", "max_branches", "7")
    file_of(root).write_text("max_branches = 8\nmax_file_size = ")
    done = snap(root, "run", "--", "true")
    assert "config.toml, line 2" in done.stderr
    with Store.open(root) as store:
        assert store.header.max_branches == 7
    assert "config.toml, line 2" in said_in_log(root)
    assert FILE not in snap(root, "run", "--", "true").stderr, "said once, and in `status` and `config` from then on"
    assert snap_json(root, "config", "--json")["problems"][0]["line"] == 2
    assert "line 2" in snap(root, "config", "set", "gc_auto", "off", status=2).stderr


def test_one_wrong_value_leaves_the_others_good(root: Path) -> None:
    snap(root, "init")
    snap(root, "config", "set", "max_branches", "7")
    file_of(root).write_text('max_branches = "many"\nwarn_branch = 3\ngc_auto = false\n[table]\nx = 1\n')
    said = snap(root, "config").stderr
    assert "line 1: max_branches: 'many' is not a whole number" in said
    assert "line 2: there is no setting 'warn_branch'. Did you mean warn_branches?" in said
    assert "line 4: there is no setting 'table'" in said
    with Store.open(root) as store:
        assert (store.header.max_branches, store.header.gc_auto) == (7, False)
    snap(root, "config", "set", "max_branches", "9")
    snap(root, "config", "set", "machine_name", "tower")
    assert (
        file_of(root)
        .read_text()
        .startswith('max_branches = 9\nwarn_branch = 3\ngc_auto = false\nmachine_name = "tower"\n[table]')
    )


RUBBISH = {
    "bytes": b"\xff\xfe",
    "nul": b"\0",
    "huge": b"# " + b"x" * (2 << 20),
    "deep": b"[" * 5000,
    "deep value": b"max_branches = " + b"[" * 300 + b"]" * 300,
    "deep stranger": b"x = " + b"[" * 300 + b"]" * 300,
    "digits": b"max_file_size = " + b"9" * 5000,
    "digits by sixteen": b"max_branches = 0x" + b"f" * 5000,
    "digits in a list": b"never_capture = [0x" + b"f" * 5000 + b"]",
    "long key": b"x" * 60_000 + b" = 1",
    "long value": b'machine_name = "' + b"x" * 60_000 + b'"',
    "parts of a key": b".".join([b"a"] * 30_000) + b" = 1",
    "parts in quotes": b".".join([b'"a"'] * 15_000) + b" = 1",
    "parts of a table": b"[" + b".".join([b"a"] * 30_000) + b"]",
    "quotes": b'\\"' * 30_000,
    "blanks": b" " * 60_000 + b"\nx = 1",
    "strangers": b"".join(b"x%d=1\n" % number for number in range(7000)),
}


@pytest.mark.parametrize("data", RUBBISH.values(), ids=RUBBISH.keys())
def test_rubbish_in_the_file_neither_fails_nor_stops_a_turn(root: Path, store: Store, data: bytes) -> None:
    path = Path(config.path_of(store))
    path.write_bytes(data)
    began = time.process_time()
    turn(store.session("s"), root, a="1")
    problems = config.read(store.folder, faults)[1]
    assert time.process_time() - began < 2, "by the square of it, it would be minutes"
    assert 1 <= len(problems) <= 11
    assert all(len(f"{problem} {problem.hint}") < 500 for problem in problems)
    if problems[0].key is None:
        with pytest.raises(SnapstoreError):
            store.configure(gc_auto=False)
        assert path.read_bytes() == data


def _loop(path: str) -> None:
    os.symlink(path, path)


@pytest.mark.parametrize(
    "make",
    [os.mkdir, os.mkfifo, _loop, lambda path: os.symlink("/dev/zero", path)],
    ids=["folder", "fifo", "loop", "device"],
)
def test_no_file_in_its_place_fails_no_turn_and_nobody_waits_at_it(root: Path, make: Callable[[str], None]) -> None:
    snap(root, "init")
    snap(root, "config", "set", "max_branches", "7")
    file_of(root).unlink()
    make(str(file_of(root)))
    assert "cannot be read" in snap(root, "run", "--", "true").stderr
    assert "cannot be read" not in snap(root, "run", "--", "true").stderr, "said once"
    assert "cannot be read" in snap(root, "config").stderr
    assert "cannot be read" in snap(root, "config", "set", "gc_auto", "off", status=1).stderr
    with Store.open(root) as store:
        assert store.header.max_branches == 7


def test_settings_may_lie_elsewhere(root: Path, tmp_path: Path) -> None:
    """A person may keep them with the rest of theirs, and a link leads there."""
    snap(root, "init")
    write(tmp_path / "mine.toml", "max_branches = 3\n")
    file_of(root).symlink_to(tmp_path / "mine.toml")
    assert snap(root, "config", "get", "max_branches").stdout == "3\n"


def test_more_than_can_be_read_is_not_written(root: Path, store: Store) -> None:
    store.configure(max_branches=7)
    before = Path(config.path_of(store)).read_bytes()
    with pytest.raises(Usage, match="larger than"):
        store.configure(never_capture=["x" * 4000] * 20)
    assert Path(config.path_of(store)).read_bytes() == before
    assert store.header.never_capture == []


def test_an_unusual_spelling_is_not_torn(root: Path, store: Store) -> None:
    """A key that we would not find is rather left to its writer than written twice."""
    path = Path(config.path_of(store))
    path.write_text('"max_branches" = 5\n')
    assert snap_json(root, "config", "get", "max_branches", "--json")["value"] == 5
    assert "by hand" in snap(root, "config", "set", "max_branches", "6", status=1).stderr
    assert path.read_text() == '"max_branches" = 5\n'


# Old stores, kills, and the hot path


def test_a_store_from_before_there_was_a_file_keeps_its_limits(root: Path, store: Store) -> None:
    from snapstore.base import files
    from snapstore.store.state import encode

    store.header.max_file_size = 1234
    files.write(f"{store.state}/format", encode(store.header))
    with Store.open(root) as old:
        assert old.header.max_file_size == 1234
        old.configure(max_branches=3)
    with Store.open(root) as after:
        assert (after.header.max_file_size, after.header.max_branches) == (1234, 3)


def test_killed_at_any_moment_a_setting_is_old_or_new(root: Path, store: Store) -> None:
    """G-37: and the file and the header agree once more after the next command."""
    nth = 0
    while True:
        nth += 1
        store.configure(max_branches=7)
        going_on = killed_at(nth, lambda: Store.open(root).configure(max_branches=8))
        with Store.open(root) as after:
            after.session("s").begin("next").end()
            found = after.header.max_branches
            assert found in (7, 8)
            assert Documents(after.state).header().max_branches == found
            assert config.read(after.folder)[0]["max_branches"] == found
        if not going_on:
            break
    assert nth > 10
    assert found == 8


def test_a_hook_reads_the_file_only_when_it_changed(root: Path) -> None:
    code = "import sys\nsys.modules['tomllib'] = None\n"
    snap(root, "config", "list", status=13)
    snap(root, "init", "--max-branches", "7")
    snap(root, "run", "--", "true")
    assert not {"tomllib", "pydantic"} & set(loaded(root, "turn", "begin").split(","))
    assert not {"tomllib", "pydantic"} & set(loaded(root, "turn", "end").split(","))
    from helpers import child

    done = child(f"{code}from snapstore import Store\nprint(Store.open(sys.argv[1]).header.max_branches)", root)
    assert done.stdout == b"7\n", done.stderr.decode()


# Values


@given(some.integers(0, 2**62))
def test_a_size_reads_back_as_it_was_spelled(value: int) -> None:
    setting = BY_NAME["max_store_size"]
    assert setting.convert(setting.spell(value)) == value or value > 2**53  # past that a float is not exact


@given(some.integers(0, 10**9))
def test_a_duration_reads_back_as_it_was_spelled(value: int) -> None:
    setting = BY_NAME["gc_grace"]
    assert setting.convert(setting.spell(value)) == value


TEXT = some.text("0129.-bdgkmsw *é\n", max_size=6)
ANYTHING = some.one_of(some.none(), some.booleans(), some.integers(), some.floats(), TEXT, some.lists(TEXT, max_size=3))


@given(some.dictionaries(some.sampled_from([*BY_NAME, "other"]), ANYTHING, max_size=4))
def test_the_light_check_and_the_record_agree(data: dict[str, Any]) -> None:
    assert config.faults(data) == faults(data)
    if not faults(data):
        checked = Config.model_validate(data)
        assert all(getattr(checked, key) == BY_NAME[key].convert(value) for key, value in data.items())


@pytest.mark.parametrize("how", ["a folder beside it", "a folder in its place", "no folder for it"])
@pytest.mark.parametrize("command", [("config", "set", "gc_grace", "3d"), ("forget", "-y", "secret")])
def test_a_file_of_settings_that_cannot_be_replaced_stops_no_turn(
    root: Path, how: str, command: tuple[str, ...], tmp_path: Path
) -> None:
    """The change is refused before it is written down, and leaves nothing for later commands to finish."""
    snap(root, "run", "--", "sh", "-c", "echo hunter2hunter2 > secret")
    with Store.open(root) as store:
        file = Path(store.folder, "config.toml")
        before = all_refs(store)
    file.unlink(missing_ok=True)
    if how == "no folder for it":
        file.symlink_to(tmp_path / "nowhere" / "config.toml")
    else:
        Path(f"{file}.new" if how == "a folder beside it" else file).mkdir()
    done = snap(root, *command, status=1)
    assert "config.toml" in done.stderr and "Traceback" not in done.stderr
    snap(root, "run", "--", "sh", "-c", "echo 2 > other")
    with Store.open(root) as store:
        assert before.keys() <= all_refs(store).keys() and not store.journal.pending()


def test_a_link_to_a_file_of_settings_stays_one(root: Path, tmp_path: Path) -> None:
    snap(root, "run", "--", "true")
    with Store.open(root) as store:
        file = Path(store.folder, "config.toml")
    file.unlink(missing_ok=True)
    mine = tmp_path / "mine.toml"
    mine.write_text('gc_grace = "9d"  # mine\n')
    file.symlink_to(mine)
    snap(root, "config", "set", "gc_grace", "3d")
    assert file.is_symlink() and 'gc_grace = "3d"' in mine.read_text()
    assert snap(root, "config", "get", "gc_grace").stdout.strip() == "3d"
