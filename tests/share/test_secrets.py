"""A push is checked for secrets: in the files it would send, in the records of turns, in commit messages.

No secret stands in this file: each is put together when the test runs, so that the file itself can be pushed.
"""

from __future__ import annotations

import json
import os
import random
import re
import string
import time
import tracemalloc
from pathlib import Path

import pytest
from commands import snap, snap_json
from helpers import git, turn, write

from snapstore import Store
from snapstore.errors import Secret, Usage
from snapstore.git.objects.notes import REFS
from snapstore.share.secrets import check, detect_secrets, prefilter, rules
from snapstore.share.secrets.check import Finding
from snapstore.surface.records.base import document
from snapstore.surface.records.errors import ErrorRecord
from snapstore.surface.records.sharing import FindingRecord

PAGE = (Path(__file__).parents[2] / "docs/secrets.md").read_text()
DICE = random.Random(7)
WORD = string.ascii_letters + string.digits


def made(size: int, letters: str = WORD) -> str:
    """So many characters, as a machine makes them."""
    found = [DICE.choice(letters) for _ in range(size)]
    found[size // 2] = "7" if "7" in letters else letters[0]
    return "".join(found)


TOKENS = {
    "github-token": "ghp_" + made(36),
    "gitlab-token": "glpat-" + made(20),
    "slack-token": "xoxb-" + made(12, string.digits) + "-" + made(24),
    "stripe-key": "sk_live_" + made(24),
    "google-key": "AIza" + made(35),
    "anthropic-key": "sk-ant-api03-" + made(90),
    "openai-key": "sk-proj-" + made(120),
    "huggingface-token": "hf_" + made(34, string.ascii_letters),
    "npm-token": "npm_" + made(36),
    "pypi-token": "pypi-" + "AgEIcHlwaS5vcmc" + made(80),
    "aws-access-key": "AKIA" + made(16, string.ascii_uppercase + "234567"),
    "aws-secret-key": "aws_secret_access_key = " + made(40),
    "other-token": "SG." + made(22) + "." + made(43),
    "web-token": "eyJhbGciOiJIUzI1NiJ9" + "." + "eyJzdWIiOiI0MiJ9" + "." + made(43),
    "url-password": "postgres://app:" + made(14) + "@db.internal/app",
    "assigned-secret": 'db_password = "' + made(14) + '"',
    "private-key": "-----BEGIN RSA " + "PRIVATE KEY-----\n" + made(64) + "\n" + made(64),
}

HARMLESS = [
    "password = get_password(user)",
    'password = "changeme"',
    'password: "your-password-here"',
    'PASSWORD_FIELD = "user.password"',
    'token = "some_function_name"',
    'secret = "${SECRET_FROM_VAULT}"',
    "postgres://user:password@localhost/app",
    "https://$USER:$TOKEN@github.com/x",
    'assert text.startswith("-----BEGIN RSA ' + 'PRIVATE KEY-----")',
    "AKIA" + "IOSFODNN7EXAMPLE",
    "ghp_" + "x" * 36,
    'integrity "sha512-' + made(86) + '=="',
    '"sessionId": "550e8400-e29b-41d4-a716-446655440000"',
    '"max_tokens": "128000"',
    "sk-" + "learn-intelex-is-fine",
    "commit 8ba638108ccf38b98ba638108ccf38b98ba63810",
]


def pushed(store: Store, session: str = "s1", since: str | None = None) -> list[Finding]:
    """The check, over all that a first push would send (or what came after a commit)."""
    git_dir = store.shadow.git_dir
    wanted = f"{since}..refs/snapstore/cursor/{session}" if since else f"refs/snapstore/cursor/{session}"
    commits = [bytes.fromhex(row) for row in git(git_dir, "rev-list", "--reverse", wanted).decode().split()]
    return check.check(store, commits, [(oid, blob) for oid, blob in noted(store) if oid in commits])


def noted(store: Store) -> list[tuple[bytes, bytes]]:
    found = []
    for ref in REFS:
        rows = git(store.shadow.git_dir, "notes", f"--ref={ref}", "list", may_fail=True).decode().split("\n")
        pairs = [row.split(" ") for row in rows if row]
        found += [(bytes.fromhex(commit), bytes.fromhex(blob)) for blob, commit in pairs]
    return found


def found(findings: list[Finding]) -> list[tuple[str, str | None, int | None]]:
    return [(finding.rule, finding.path and finding.path.decode(), finding.line) for finding in findings]


# Lines.


@pytest.mark.parametrize("rule", TOKENS)
def test_each_rule_finds_its_secret_with_file_turn_and_line(root: Path, store: Store, rule: str) -> None:
    session = store.session("s1")
    turn(session, root, "Nothing special", readme="hello\n")
    turn(session, root, "Set it up", src__config="# settings\n\n" + TOKENS[rule] + "\nrest\n")
    (finding,) = pushed(store)
    assert (finding.rule, finding.path, finding.line, finding.turn) == (rule, b"src/config", 3, 2)
    assert (finding.kind, finding.session) == ("file", "s1")


@pytest.mark.parametrize("line", HARMLESS)
def test_what_only_resembles_one_is_let_through(root: Path, store: Store, line: str) -> None:
    turn(store.session("s1"), root, "Go", file=line + "\n", settings__yml=line + "\n")
    assert pushed(store) == []


def test_our_own_code_is_let_through(root: Path, store: Store) -> None:
    """The rules themselves, the readers of conversations, whatever speaks of tokens and passwords."""
    code = Path(__file__).parents[2] / "snapstore"
    with store.session("s1").turn("All of it"):
        for path in code.rglob("*.py"):
            write(root / path.relative_to(code), path.read_bytes())
    assert [str(finding) for finding in pushed(store)] == []


@pytest.mark.parametrize("before", ["key-", "KEY_", "-", "a/", "token="])
def test_a_token_is_seen_whatever_sign_comes_before_it(root: Path, store: Store, before: str) -> None:
    turn(store.session("s1"), root, "Go", note=f"{before}{TOKENS['github-token']}\n")
    assert [finding.rule for finding in pushed(store)] == ["github-token"]


def test_settings_without_quotes_are_read_in_files_of_settings(root: Path, store: Store) -> None:
    value = made(16)
    with store.session("s1").turn("Go"):
        for name in ("app.ini", "app.yml", "notes.txt"):
            write(root / name, f"[db]\ndb_password: {value}\n")
        write(root / ".npmrc", "registry=https://npm.example\n//npm.example/:_authToken=" + made(30) + "\n")
    assert found(pushed(store)) == [
        ("registry-login", ".npmrc", 2),
        ("assigned-secret", "app.ini", 2),
        ("assigned-secret", "app.yml", 2),
    ]


def test_the_quick_way_finds_what_the_plain_one_would() -> None:
    """Wherever a token stands, and whatever is around it."""
    dice = random.Random(5)
    lines = [
        *TOKENS.values(),
        "12345678:AA" + made(33),
        "AccountKey=" + made(86) + "==",
        "secretAccessKey: " + made(40),
    ]
    lines += ["eyJhbGciOiJub25lIn0" + "." + "eyJhIjoxfQ" + "." + made(20), f"token['x'] => '{made(8)}'"]
    lines += [f'{{"api_key" :   `{made(250)}`}}', f'PASSWORD := "{made(9)}é"']
    for _ in range(300):
        noise = ["".join(dice.choices("aB3_-+/.=:  \n\"'(é\0", k=dice.randrange(60))) for _ in lines]
        text = "\n".join(a + dice.choice(" \"'(\n") + b for a, b in zip(noise, lines, strict=True)).encode()
        for rule in rules.ANYWHERE:
            if rule.within is not None:
                part = rule.within(text)
                plain = {secret for _, _, secret in rule.found_in(text, text.lower())}
                assert plain <= {secret for _, _, secret in rule.found_in(part, part.lower())}, rule.name


# Names.


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        (".env", "env-file"),
        ("deploy/.env.production", "env-file"),
        ("prod.env", "env-file"),
        (".ssh/id_ed25519", "ssh-key"),
        ("server.PEM", "key-file"),
        ("a/b/store.p12", "key-store"),
        ("credentials", "credentials-file"),
        (".netrc", "credentials-file"),
        ("service-account-prod.json", "credentials-file"),
        (".kube/config", "credentials-file"),
        ("terraform.tfstate", "credentials-file"),
    ],
)
def test_a_file_can_be_one_by_its_name(root: Path, store: Store, name: str, rule: str) -> None:
    with store.session("s1").turn("Go"):
        write(root / name, b"\x00\x01 binary")  # read for nothing but its name
    (finding,) = pushed(store)
    assert (finding.rule, finding.path, finding.line, finding.turn) == (rule, name.encode(), None, 1)


def test_names_that_only_resemble_one_are_let_through(root: Path, store: Store) -> None:
    with store.session("s1").turn("Go"):
        for name in (".env.example", ".env.local.sample", "id_rsa.pub", "config", "credentials.py", "environment"):
            write(root / name, "x\n")
        write(root / ".env", "")  # nothing in it
        write(root / "ca.pem", "-----BEGIN CERTIFICATE-----\n" + made(64) + "\n-----END CERTIFICATE-----\n")
    assert pushed(store) == []


# Records and messages.


def test_records_are_read_too_prompt_reply_tools_and_raw_lines(root: Path, store: Store) -> None:
    token = TOKENS["github-token"]
    password = made(14)
    session = store.session("s1")
    session.begin(f"Use this:\n{token}\nand go")
    raw = json.dumps({"message": {"content": [{"input": {"password": password}}]}})
    session.end(replies=["fine"], tool_calls=[{"name": "Write", "input": {"content": "a\nb\n" + TOKENS["stripe-key"]}}],
                lines=["{}", raw])  # fmt: skip
    where = {finding.where: (finding.rule, finding.line, finding.turn) for finding in pushed(store)}
    assert where == {
        "": ("github-token", 3, 1),  # of the commit's message
        "prompt": ("github-token", 2, 1),
        "tool_calls[0].input.content": ("stripe-key", 3, 1),
        "lines[1].message.content[0].input.password": ("assigned-secret", 1, 1),
    }


def test_a_commit_message_is_read(root: Path, store: Store) -> None:
    turn(store.session("s1"), root, f"Deploy with {TOKENS['gitlab-token']}", file="x")
    kinds = {finding.kind: finding.rule for finding in pushed(store)}
    assert kinds == {"message": "gitlab-token", "record": "gitlab-token"}


# What is read.


def test_names_are_looked_at_themselves_and_not_shown(root: Path, store: Store) -> None:
    """However many there are, and in whatever bytes; a folder is one finding."""
    session, token, other = store.session("s1"), TOKENS["github-token"], TOKENS["npm-token"]
    for number in range(300):
        write(root / "many" / f"{number}", "x")
    write(root / "many" / "zz" / token, "x")
    write(Path(os.fsdecode(os.fsencode(root) + b"/\377\376" + other.encode())), "x")
    turn(session, root, "Many", a="1")
    for name in "123":
        write(root / TOKENS["stripe-key"] / name, TOKENS["google-key"] if name == "2" else name)
    turn(session, root, "A folder", a="2")
    findings = pushed(store)
    assert sorted(finding.rule for finding in findings) == ["github-token", "google-key", "npm-token", "stripe-key"]
    said = " ".join(map(str, findings)) + json.dumps([document(FindingRecord.of(finding)) for finding in findings])
    assert re.search(r"the name many/zz/\*\*\*, .* of session s1: github-token", said)
    assert "***/2, line 1, " in said
    assert not any(token in said for token in TOKENS.values())
    check.allow(store, [finding.fingerprint for finding in findings])
    assert pushed(store) == []


def test_names_of_branches_and_checkpoints_are_looked_at(root: Path, store: Store) -> None:
    turn(store.session("s1"), root, "Go", a="1")
    refs = {f"refs/heads/s1/{TOKENS['github-token']}": b"\1" * 20, "refs/tags/s1/before": b"\1" * 20}
    (finding,) = check.check(store, [], names=refs)
    assert str(finding) == "the name refs/heads/s1/***: github-token, 40 characters"
    assert TOKENS["github-token"] not in json.dumps(document(FindingRecord.of(finding)))
    assert check.check(store, [], allowed=[finding.fingerprint], names=refs) == []


RANDOM = "k7Jd93hFq2LmZx0P"


@pytest.mark.parametrize(
    "before",
    [
        {},
        {"a.yml": "user: x\npassword:\n"},
        {"a.yml": "-----BEGIN PRIVATE KEY-----\n"},
        {"a.yml": f"https://me:{made(10)}@h.io"},
    ],
)
def test_what_stands_before_a_secret_does_not_hide_it(root: Path, store: Store, before: dict[str, str]) -> None:
    """Small files are looked through together: the end of one and the beginning of the next are no match, and one that
    is found or allowed is none for its neighbour."""
    key = "-----BEGIN PRIVATE KEY-----\n" + "\n".join(made(64) for _ in range(8))
    here = {"b.yml": f'"password": "{RANDOM}"', "c": f"Key: {key}", "d": "sid AC" + "9f8e7d6c5b4a3f2e" * 2}
    with store.session("s1").turn("Go"):
        for name, text in {**before, **here}.items():
            write(root / name, text)
    findings = pushed(store)
    assert {os.fsdecode(finding.path or b"") for finding in findings} - before.keys() == here.keys()
    check.allow(store, [finding.fingerprint for finding in findings if finding.path == b"a.yml"])
    assert {os.fsdecode(finding.path or b"") for finding in pushed(store)} == here.keys()
    with store.session("s1").turn("In one"):
        write(root / "e", f'password:\n"password": "{RANDOM}"\n')
    assert "e" in {os.fsdecode(finding.path or b"") for finding in pushed(store)}


def test_a_secret_in_quotes_inside_a_string_is_one(root: Path, store: Store) -> None:
    open_turn = store.session("s1").begin("Go")
    text = json.dumps({"text": f'password = "{RANDOM}"'})
    open_turn.reply(json.dumps({"filler": "x" * (5 << 20), "more": text}))
    write(root / "a", "x " * 50_000 + text)
    open_turn.end()
    assert {finding.kind for finding in pushed(store)} == {"record", "file"}


def test_no_line_keeps_a_rule_busy_for_ever(root: Path, store: Store) -> None:
    """Of headers before a key each can be cut in one way only."""
    turn(store.session("s1"), root, "Go", a="-----BEGIN PRIVATE KEY-----\n" + "Abc: " * 200 + "!\n")
    assert pushed(store) == []
    key = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n" + made(64)
    turn(store.session("s1"), root, "Go", b=f"-----BEGIN RSA PRIVATE KEY-----\n{key}\n")
    assert found(pushed(store)) == [("private-key", "b", 1)]


@pytest.mark.parametrize(
    "said",
    [
        {"auths": {f"https://me:{RANDOM}@h.io": {}}},
        {TOKENS["github-token"]: 1},
        {TOKENS["github-token"]: {"below": TOKENS["npm-token"]}},
        f'{{"a": "{TOKENS["github-token"]}", "a": 1}}',
        f'{{"password": "{RANDOM}", "password": "x"}}',
    ],
)
def test_fields_of_json_in_a_record_are_looked_at_with_their_names(root: Path, store: Store, said: object) -> None:
    open_turn = store.session("s1").begin("Go")
    open_turn.reply(said if isinstance(said, str) else json.dumps(said))
    write(root / "a", "1")
    open_turn.end()
    findings = pushed(store)
    assert findings and {finding.kind for finding in findings} == {"record", "message"}  # it is the answer in brief
    told = json.dumps([[str(finding), document(FindingRecord.of(finding))] for finding in findings])
    assert not any(secret in told for secret in (RANDOM, TOKENS["github-token"], TOKENS["npm-token"]))


def test_all_that_refs_lead_to(root: Path, store: Store) -> None:
    """As it goes into a file, after an earlier one."""
    session = store.session("s1")
    open_turn = session.begin("Ask " + TOKENS["npm-token"])
    write(root / "a", TOKENS["github-token"])
    open_turn.end()
    refs = store.shadow.refs.list("refs/")
    assert {(finding.kind, finding.rule) for finding in check.check_refs(store, refs)} == {
        ("file", "github-token"),
        ("record", "npm-token"),
        ("message", "npm-token"),
    }
    with pytest.raises(Secret, match="nothing was written"):
        check.refuse(check.check_refs(store, refs), "snapstore export FILE", "written")
    turn(session, root, "Again", b=TOKENS["stripe-key"])
    after = store.shadow.refs.list("refs/")
    assert found(check.check_refs(store, after, refs.values())) == [("stripe-key", "b", 1)]


def test_only_what_is_new_is_read(root: Path, store: Store) -> None:
    session = store.session("s1")
    first = turn(session, root, "One", old=TOKENS["npm-token"] + "\n", kept="x")
    turn(session, root, "Two", new="y", kept=None)
    assert pushed(store, since=first) == []
    turn(session, root, "Three", old=TOKENS["npm-token"] + "\nmore\n")
    assert found(pushed(store, since=first)) == [("npm-token", "old", 1)]


def test_a_secret_that_a_later_turn_removed_is_still_sent_and_so_found(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "Oops", file=TOKENS["npm-token"])
    turn(session, root, "Out again", file="clean")
    assert [(finding.turn, finding.path) for finding in pushed(store)] == [(1, b"file")]


def test_long_files_and_long_lines_stream_through_bounded_memory(root: Path, store: Store) -> None:
    size = 24 << 20
    with store.session("s1").turn("Go"):
        filler = b"a quiet line of text\n" * (size // 21)
        write(root / "long", filler + TOKENS["github-token"].encode() + b"\n" + filler)
        write(root / "one-line", b"x" * size + b" " + TOKENS["npm-token"].encode() + b" " + b"y" * 100)
        write(root / "cut", b"z " * ((1 << 19) - 10) + TOKENS["slack-token"].encode())  # over the edge of a piece
    tracemalloc.start()
    try:
        findings = pushed(store)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert sorted(found(findings)) == [
        ("github-token", "long", size // 21 + 1),
        ("npm-token", "one-line", 1),
        ("slack-token", "cut", 1),
    ]
    assert peak < 16 << 20


def test_many_files_are_looked_through_by_two_processes(root: Path, store: Store) -> None:
    with store.session("s1").turn("Go"):
        for number in range(2100):
            write(root / f"d{number % 30}" / f"{number:04}", f"line\n{number}\n")
        write(root / "a", "x\n" + TOKENS["npm-token"])
        write(root / "z", "\n\n" + TOKENS["github-token"])
    assert sorted(found(pushed(store))) == [("github-token", "z", 3), ("npm-token", "a", 2)]


@pytest.mark.parametrize("stored", ["as a delta", "loose"])
def test_however_it_is_stored(root: Path, store: Store, stored: str) -> None:
    session, git_dir = store.session("s1"), store.shadow.git_dir
    lines = [made(40) for _ in range(100)]
    for number, rule in enumerate(["github-token", "npm-token", "stripe-key"]):
        lines[50] = TOKENS[rule]
        turn(session, root, f"Turn {number}", a="\n".join(lines), b="")
    git(git_dir, "repack", "-adfq")
    (pack,) = Path(git_dir, "objects", "pack").glob("*.pack")
    if stored == "loose":
        data = pack.read_bytes()
        for path in pack.parent.glob(f"{pack.stem}.*"):
            path.unlink()
        git(git_dir, "unpack-objects", "-q", feed=data)
    else:
        assert b"chain length = 1" in git(git_dir, "verify-pack", "-v", str(pack))
    store.shadow.objects.reload()
    assert [finding.rule for finding in pushed(store)] == ["github-token", "npm-token", "stripe-key"]


def test_text_in_utf_16_is_text(root: Path, store: Store) -> None:
    with store.session("s1").turn("Go"):
        write(root / "settings.ps1", ("\ufeff$x = 1\r\n# " + TOKENS["github-token"]).encode("utf-16-le"))
    assert found(pushed(store)) == [("github-token", "settings.ps1", 2)]


def test_a_secret_that_comes_again_and_again_is_one_finding(root: Path, store: Store) -> None:
    turn(store.session("s1"), root, "Go", file=(TOKENS["npm-token"] + "\n") * 1000)
    assert found(pushed(store)) == [("npm-token", "file", 1)]


def test_hostile_names_and_records_harm_nothing(root: Path, store: Store) -> None:
    session = store.session("s1")
    with session.turn("Go \x1b[31m"):
        write(bytes(root) + b"/\xff\x1b[2J\n.env", TOKENS["npm-token"])
    session.begin("Deep")
    session.end(lines=["[" * 200_000, '{"a": ' * 50_000])
    findings = pushed(store)
    assert {finding.rule for finding in findings} == {"env-file", "npm-token"}
    with pytest.raises(Secret) as refused:
        check.refuse(findings)
    assert "\x1b" not in refused.value.message
    json.dumps(document(ErrorRecord.of(refused.value)))


@pytest.mark.parametrize("rule", rules.LINES, ids=lambda rule: rule.name)
def test_no_text_takes_for_ever(rule: rules.LineRule) -> None:
    """A long line that begins to be a secret again and again: every rule's time grows with its length."""
    for mark in rule.marks:
        for filler in (b"", b" ", b"=", b'="', b": ", b"a" * 30, b"A1b2" * 10 + b".", b"\\n", b"Ab: c"):
            text = (mark + filler) * ((1 << 17) // len(mark + filler))
            start = time.process_time()
            list(rule.found_in(text, text.lower()))
            prefilter.around_tokens(text)
            prefilter.around_values(text)
            assert time.process_time() - start < 2, (mark, filler)


def test_no_word_takes_for_ever() -> None:
    for text in (b"x" * (1 << 20), b"a1-" * (1 << 18), b"0" * (1 << 20)):
        start = time.process_time()
        list(detect_secrets.Detector().found_in(text))
        assert time.process_time() - start < 5


# The refusal, and what allows it.


def test_the_refusal_tells_everything_but_the_secret(root: Path, store: Store) -> None:
    token = TOKENS["github-token"]
    turn(store.session("s1"), root, "Go", src__a=f"\n\nkey = {token}\n")
    findings = pushed(store)
    with pytest.raises(Secret) as refused:
        check.refuse(findings)
    error = refused.value
    assert error.status == 18
    assert "src/a, line 3, turn 1 of session s1: github-token" in error.message
    assert f"push --allow {findings[0].fingerprint}" in error.hint
    said = json.dumps(document(ErrorRecord.of(error)))
    assert token not in said and token[4:12] not in said
    check.refuse([])  # nothing found, nothing said


def test_exactly_the_allowed_finding_passes(root: Path, store: Store) -> None:
    session = store.session("s1")
    turn(session, root, "Go", a=TOKENS["github-token"], b=TOKENS["npm-token"])
    one, other = pushed(store)
    check.allow(store, [one.fingerprint])
    assert pushed(store) == [] or [finding.fingerprint for finding in pushed(store)] == [other.fingerprint]
    with Store.open(root) as again:
        assert [finding.fingerprint for finding in pushed(again)] == [other.fingerprint]
    # The lines around it may change; the same secret elsewhere, or another in its place, is another finding.
    turn(session, root, "More", a="# a line\n" + TOKENS["github-token"])
    assert [finding.path for finding in pushed(store)] == [b"b"]
    turn(session, root, "Elsewhere", c=TOKENS["github-token"], a="ghp_" + made(36))
    assert sorted(finding.path or b"" for finding in pushed(store)) == [b"a", b"b", b"c"]


def test_an_allowed_file_is_asked_about_again_when_it_changes(root: Path, store: Store) -> None:
    session = store.session("s1")
    with session.turn("Go"):
        write(root / ".env", "DEBUG=1\n")
    check.allow(store, [finding.fingerprint for finding in pushed(store)])
    assert pushed(store) == []
    with session.turn("More"):
        write(root / ".env", "DEBUG=2\n")
    assert [finding.turn for finding in pushed(store)] == [2]


def test_only_a_fingerprint_can_be_allowed(store: Store) -> None:
    for word in ("", "all", "../../x", "0" * 15, "g" * 16, "\x1b[31m"):
        with pytest.raises(Usage):
            check.allow(store, [word])
    assert check.allowed_in(store) == set()


# detect-secrets.


def test_detect_secrets_adds_what_our_rules_do_not_know(root: Path, store: Store) -> None:
    pytest.importorskip("detect_secrets")
    turn(
        store.session("s1"),
        root,
        "Go",
        file="\nkey = " + made(32, "0123456789abcdef") + "-us12\n",
        other="AC" + "x" * 4,
    )
    (finding,) = pushed(store)
    assert (finding.rule, finding.line) == ("detect-secrets: Mailchimp Access Key", 2)


def test_detect_secrets_and_ours_report_a_secret_once(root: Path, store: Store) -> None:
    pytest.importorskip("detect_secrets")
    turn(store.session("s1"), root, "Go", file=TOKENS["aws-access-key"] + "\n")
    assert found(pushed(store)) == [("aws-access-key", "file", 1)]


def test_without_detect_secrets_our_rules_do(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(detect_secrets, "ASKED", (("no_such_module", "Nobody", (b"",), b""),))
    turn(store.session("s1"), root, "Go", file=TOKENS["github-token"])
    assert found(pushed(store)) == [("github-token", "file", 1)]


def test_the_page_about_secrets_lists_every_rule() -> None:
    for rule in (*rules.NAMES, *rules.LINES):
        assert f"| `{rule.name}` |" in PAGE, rule.name
        for word in rule.help.split(", "):
            assert word in PAGE, (rule.name, word)


# The command.


def test_the_command_stops_with_status_18_and_goes_on_when_allowed(root: Path, tmp_path: Path) -> None:
    there = str(tmp_path / "there.git")
    git(there, "init", "-q", "--bare", there)
    snap(root, "init")
    snap(root, "remote", "add", "origin", there)
    write(root / "settings", "one\n" + TOKENS["github-token"] + "\n")
    snap(root, "run", "-m", "Settings", "--", "touch", "other")
    refused = snap_json(root, "push", "--json", status=18)
    assert refused["error"] == "secret"
    (finding,) = refused["findings"]
    assert (finding["path"], finding["line"], finding["rule"]) == ("settings", 2, "github-token")
    assert TOKENS["github-token"] not in json.dumps(refused)
    assert git(there, "for-each-ref") == b""  # nothing was sent
    said = snap(root, "push", status=18).stderr
    assert "settings, line 2" in said and f"--allow {finding['fingerprint']}" in said
    write(root / "more", "\n" + TOKENS["npm-token"])
    snap(root, "run", "-m", "More", "--", "touch", "other")
    rows = snap(root, "push", status=18).stderr.splitlines()
    words = [re.fullmatch(r"  (settings|more), line 2, .*  --allow ([0-9a-f]{16})", row) for row in rows[1:3]]
    assert all(words), rows
    snap(root, "push", *(word for match in words if match for word in ("--allow", match[2])))
    assert b"refs/heads/shell/main" in git(there, "for-each-ref")
    snap(root, "run", "-m", "More", "--", "sh", "-c", "echo more >> settings")
    snap(root, "push")  # the same secret in the same place stays allowed
