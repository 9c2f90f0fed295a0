"""`forget PATH`: what was said of a file, in prompts, replies and raw lines, however much there was to be said."""

from __future__ import annotations

import json
import random
import string
import time
from pathlib import Path

import pytest
from commands import snap, snap_json
from forgetting import SECRET, forget, holds
from helpers import line, turn, write

from snapstore import Store
from snapstore.git import refs
from snapstore.timeline.record import fragments
from snapstore.timeline.record.fragments import FragmentSearch


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


@pytest.mark.parametrize(
    "text",
    [
        "machine api.example.com login me password {}",
        "//registry.example.com/:_authToken={}",
        "https://me:{}@example.com",
        "db.example.com:5432:main:me:{}",
        "DATABASE_URL=postgres://me:{}@db/main",
        "me {} admin",
        "auth: {{user: me, pass: {}}}",
        "Authorization: Bearer {}",
        "curl -u me:{}, https://example.com",
        '  "key": ["{}"],',
        "export KEY='{}' # prod",
    ],
)
@pytest.mark.parametrize("around", [0, 100])
def test_a_secret_is_found_that_is_only_a_part_of_a_line(root: Path, store: Store, text: str, around: int) -> None:
    """As the files hold it that are known for secrets; also within a long one."""
    secret = key(7)
    session = store.session("s1")
    write(root / "odd", "filler words\n" * around + text.format(secret) + "\n")
    turn(session, root, f"Call it with {secret} please", a="1")
    forget(store, "odd")
    assert holds(store, secret) == []
    assert line(store, "s1")[-1]["subject"] == "Call it with [forgotten] please"


@pytest.mark.parametrize(
    ("data", "secret"),
    [
        (b"password: hunter2", "hunter2"),
        (b"filler words\n" * 100 + b"passphrase: correct horse battery staple", "correct horse battery staple"),
        ("KEY=ab3de5gh7jk9".encode("utf-16"), "ab3de5gh7jk9"),
        (b'{"password":"hunter2","token":"ab3de5"}', "hunter2"),
        (b'{"password":"hunter2","token":"ab3de5"}', "ab3de5"),
        (b'{"filler": "words", ' * 200 + b'"pin": "ab3de5"}', "ab3de5"),
        ("KEY=äb3defgh".encode("latin-1"), "\udce4b3defgh"),
    ],
)
def test_a_secret_is_known_by_what_it_is_called(data: bytes, secret: str) -> None:
    assert secret in fragments.fragments_of(data)[0]


def test_a_program_is_not_known_by_what_stands_in_every_other() -> None:
    assert fragments.fragments_of(Path(refs.__file__).read_bytes()) == ({}, False)


@pytest.mark.parametrize(
    ("data", "whole"),
    [
        (b"PIN=48213", False),
        (b"PORT=8080", True),
        (b"debug: true", True),
        (b"a line of ordinary words\n" * 65, False),
        (b"a line of ordinary words\n" * 60, True),
        (b"password: changeme", False),
        (b"\0binary" * 900, True),
    ],
)
def test_what_is_not_looked_for_is_said(data: bytes, whole: bool) -> None:
    assert fragments.fragments_of(data)[1] is whole


@pytest.mark.parametrize("text", ["a=b:c=", "password: ", "://:", '"key":"', "ab1" * 10, "token x1 ", "=" * 20, "='"])
def test_a_very_long_line_takes_no_longer_than_many(text: str) -> None:
    start = time.monotonic()
    fragments.fragments_of((text * (fragments.LARGEST // len(text))).encode())
    assert time.monotonic() - start < 10


def test_ids_that_link_a_conversation_stay(root: Path, store: Store) -> None:
    session = store.session("s1")
    uuid, tool = "0a1b2c3d-1111-4222-8333-4a5b6c7d8e9f", "toolu_01A2b3C4d5E6f7G8"
    write(root / "odd", f"see {uuid} and {tool} here\n")
    session.begin("One")
    session.end(scan=True, lines=[json.dumps({"uuid": uuid, "id": tool, "text": "other"})])
    forget(store, "odd")
    assert json.loads(line(store, "s1")[-1]["record"]["lines"][0]) == {"uuid": uuid, "id": tool, "text": "other"}


def test_where_there_is_too_much_the_newest_is_looked_for_and_the_rest_is_named(
    root: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fragments, "MOST", 20)
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
    assert "large holds more text than snapstore searches for" in snap(root, "forget", "large", "--yes").stdout
    assert "more text" not in snap(root, "forget", "small", "--yes").stdout


def test_ordinary_words_of_the_file_stay_in_all_that_was_said(root: Path, store: Store) -> None:
    """And whatever is no text: trailers, names of fields, where a line belongs, in which folder it was."""
    session = store.session("production")
    write(root / "x.py", "import os\nfrom __future__ import annotations\n")
    words = ["NODE_ENV=production", "HOST=localhost", "mode: baseline", "timestamp", "parentUuid", "import os"]
    words += [f"ROOT={root}", "from __future__ import annotations", "the horse that ate my homework", SECRET]
    write(root / ".env", "\n".join(words))
    said = "Deploy to production on localhost, keep the baseline, import os"
    lines = [
        {"parentUuid": None, "cwd": str(root), "timestamp": "1", "uuid": "u1", "text": words[-3]},
        {"parentUuid": "u1", "cwd": str(root), "file_path": f"{root}/x.py", "type": "production", "text": "localhost"},
    ]  # fmt: skip
    session.begin(said)
    session.end(
        scan=True, replies=[f"{said} for the horse that ate my homework"], lines=[json.dumps(one) for one in lines]
    )
    before = line(store, "production")
    forget(store, ".env")
    after = line(store, "production")
    assert [commit["trailers"]["Kind"] for commit in after] == ["baseline", "turn"]
    for old, new in zip(before, after, strict=True):
        for key in ("subject", "trailers", "author"):
            assert new[key] == old[key]
    told = after[-1]["record"]
    assert told["prompt"] == said and told["session"] == "production"
    assert [json.loads(text) for text in told["lines"]] == lines
    assert told["replies"] == [f"{said} for [forgotten]"]  # a long line that stands in no other file


def test_two_names_of_fields_never_become_one(root: Path, store: Store) -> None:
    session = store.session("s1")
    write(root / "key", f"{SECRET}\n{key(1)}\n")
    session.begin("One")
    session.end(scan=True, replies=[json.dumps({SECRET: 1, key(1): 2, "[forgotten]": 3})])
    forget(store, "key")
    assert holds(store, SECRET) == []
    assert sorted(json.loads(line(store, "s1")[-1]["record"]["replies"][0]).values()) == [1, 2, 3]


def test_a_short_secret_goes_only_where_it_is_a_word(root: Path, store: Store) -> None:
    session = store.session("s1")
    write(root / "conf", "password: ab3de5\n")
    turn(session, root, "Use ab3de5, not xab3de5x or ab3de56", a="1")
    forget(store, "conf")
    assert line(store, "s1")[-1]["subject"] == "Use [forgotten], not xab3de5x or ab3de56"


@pytest.mark.parametrize("seed", range(20))
def test_many_are_found_as_one_by_one(seed: int) -> None:
    dice = random.Random(seed)
    letters = 'abcd \\é"'[: dice.choice((5, 8))]
    pieces = {"".join(dice.choices(letters, k=dice.randrange(1, 14))) for _ in range(dice.choice((50, 400)))}
    looked_for = FragmentSearch(pieces)
    for _ in range(20):
        data = "".join(dice.choices(letters, k=3000)).encode()
        assert looked_for.within(data) == [needle for needle in looked_for.all if needle.part.encode() in data]


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
