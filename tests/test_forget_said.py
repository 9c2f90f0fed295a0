"""`forget PATH`: what was said of a file, in prompts, replies and raw lines, however much there was to be said."""

from __future__ import annotations

import json
import random
import string
from pathlib import Path

import pytest
from helpers import line, turn, write
from test_cli import snap, snap_json
from test_forget import SECRET, forget, holds

from snapstore import Store
from snapstore.timeline import needles
from snapstore.timeline.needles import Needles


def key(number: int) -> str:
    return "".join(random.Random(number).choices(string.ascii_lowercase + string.digits, k=22)) + "7q"


def test_every_line_of_a_long_file_and_every_version_of_it_is_looked_for(root: Path, store: Store) -> None:
    session = store.session("s1")
    for version in range(4):
        with session.turn(f"Use {key(version * 1000 + 690)}"):
            write(root / "keys", "\n".join(f"key{n} = {key(version * 1000 + n)}" for n in range(700)))
    session.begin("Last")
    session.end(replies=[f"I took {key(3650)} and then {key(1)}."], lines=[f'{{"said": "{key(2333)}"}}'])
    forgotten = forget(store, "keys")
    assert forgotten.unsearched == []
    for number in (690, 1690, 2690, 3690, 3650, 1, 2333):
        assert holds(store, key(number)) == []
    nodes = line(store, "s1")
    assert [commit["subject"] for commit in nodes[1:]] == ["Use [forgotten]"] * 4 + ["Last"]
    assert nodes[-1]["record"]["replies"] == ["I took [forgotten] and then [forgotten]."]


def test_where_there_is_too_much_the_newest_is_looked_for_and_the_rest_is_named(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(needles, "MOST", 20)
    session = store.session("s1")
    for version in range(4):
        with session.turn(f"Use {key(version)}"):
            write(root / "keys", "\n".join(f"{key(version * 100 + n)}" for n in range(10)))
    turn(session, root, f"The newest is {key(305)}", other="1")
    forgotten = forget(store, "keys")
    assert forgotten.unsearched == [b"keys"]
    assert line(store, "s1")[-1]["subject"] == "The newest is [forgotten]"


def test_the_command_names_a_file_too_large_to_be_looked_for(root: Path) -> None:
    snap(root, "init")
    write(root / "large", f"{SECRET}\n" * 40_000)
    write(root / "small", "1")
    snap(root, "run", "-m", "One", "--", "sh", "-c", "echo 1 > a")
    document = snap_json(root, "forget", "large", "--dry-run", "--json")
    assert [item["path"] for item in document["unsearched"]] == ["large"]
    assert "large holds more text than is looked for" in snap(root, "forget", "large", "--yes").stdout
    assert "more text" not in snap(root, "forget", "small", "--yes").stdout


def test_ordinary_lines_of_very_many_files_are_not_taken_from_all_that_was_said(root: Path, store: Store) -> None:
    """A folder of programs holds every line that one may write."""
    session = store.session("s1")
    with session.turn("One"):
        for number in range(120):
            write(root / f"build/f{number}.py", "".join(f"call_{'abcdefghij'[n]}{'x' * number}()\n" for n in range(10)))
    turn(session, root, f"Now call_b{'x' * 3}()", other="1")
    forgotten = forget(store, "build")
    assert line(store, "s1")[-1]["subject"] == "Now call_bxxx()"
    assert b"build/f3.py" in forgotten.unsearched


@pytest.mark.parametrize("seed", range(20))
def test_many_are_found_as_one_by_one(seed: int) -> None:
    dice = random.Random(seed)
    letters = 'abc "/\\é'
    pieces = {"".join(dice.choices(letters, k=dice.randrange(1, 14))) for _ in range(dice.choice((50, 400)))}
    looked_for = Needles(pieces)
    for _ in range(20):
        data = "".join(dice.choices(letters, k=300)).encode()
        assert looked_for.within(data) == [needle for needle in looked_for.all if needle[1].encode() in data]


@pytest.mark.parametrize("secret", [SECRET, f'https://me:{SECRET}@h.io/a/b "é"'])
def test_a_field_that_is_named_twice_hides_nothing(root: Path, store: Store, secret: str) -> None:
    """Whoever reads such JSON sees the last of them."""
    session = store.session("s1")
    twice = f'{{"a": {json.dumps(secret)}, "a": 1}}'
    escaped = twice.replace("/", "\\/")
    session.begin("One")
    write(root / "key", secret)
    call = {"id": "t1", "name": "Odd", "type": "Odd", "input": twice}
    session.end(
        scan=True, replies=[twice], tool_calls=[call], lines=[twice, escaped, f'[{{"b": {json.dumps(twice)}}}]']
    )
    forget(store, "key")
    assert holds(store, SECRET) == []
    assert line(store, "s1")[-1]["record"]["replies"] == ['{"a": "[forgotten]", "a": 1}']
