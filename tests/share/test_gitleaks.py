"""gitleaks is asked about the new files of a push where it is installed.

A program of the same name stands in for it. It takes the arguments of the real one (`dir` from 8.19 on, `detect
--no-git --source` before), finds `LEAK-` words, and writes the report that the real one writes. One test asks the real
gitleaks, where it is installed; Debian's 8.16 and 8.26 passed it.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from shutil import which

import pytest
from commands import snap, snap_json
from helpers import git, turn, write
from test_secrets import TOKENS, found, made, pushed

from snapstore import Store
from snapstore.share.secrets import check, gitleaks

FAKE = """\
#!{python}
import json, os, re, sys

arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps([arguments, os.getcwd()]) + "\\n")
if arguments == ["--help"]:
    print("Available Commands:")
    print("  dir         scan directories or files" if {newer} else "  detect      detect secrets in code")
    sys.exit(0)
{trouble}
if arguments[0] == "dir" and {newer}:
    source = arguments[1]
elif arguments[:2] == ["detect", "--no-git"] and not {newer}:
    source = arguments[arguments.index("--source") + 1]
else:
    sys.exit("unknown command")
leaks = []
for folder, _, names in os.walk(source):
    for name in names:
        path = os.path.join(folder, name)
        with open(path, encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                for secret in re.findall("LEAK-[0-9a-z]+", line):
                    leaks.append({{
                        "RuleID": "generic-api-key" if "generic" in secret else "some-maker-key",
                        "Description": "A key of some maker", "StartLine": number, "EndLine": number,
                        "StartColumn": 2, "EndColumn": 9, "Match": line.strip(), "Secret": secret, "File": path,
                        "SymlinkFile": "", "Commit": "", "Entropy": 3.9, "Author": "", "Email": "", "Date": "",
                        "Message": "", "Tags": [], "Fingerprint": path + ":some-maker-key:" + str(number),
                    }})
with open(arguments[arguments.index("--report-path") + 1], "w") as report:
    json.dump(leaks, report)
"""


class Stand:
    """The stand-in, on the path of this process and its children."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log = folder / "asked"
        self._program = folder / "bin" / "gitleaks"
        monkeypatch.setenv("PATH", f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}")
        monkeypatch.setenv("TMPDIR", str(folder / "tmp"))
        (folder / "tmp").mkdir()
        monkeypatch.setattr("tempfile.tempdir", None)
        self.left = folder / "tmp"
        self.install()

    def install(self, *, newer: bool = True, trouble: str = "") -> None:
        text = FAKE.format(python=sys.executable, log=str(self.log), newer=newer, trouble=trouble)
        write(self._program, text, executable=True)

    def asked(self) -> list[list[str]]:
        rows = self.log.read_text().splitlines() if self.log.exists() else []
        return [json.loads(row)[0] for row in rows]


@pytest.fixture
def stand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stand:
    return Stand(tmp_path, monkeypatch)


@pytest.mark.parametrize("newer", [True, False])
def test_what_it_finds_is_a_finding(root: Path, store: Store, stand: Stand, newer: bool) -> None:
    stand.install(newer=newer)
    session = store.session("s1")
    turn(session, root, "Nothing special", readme="hello\n")
    turn(session, root, "Set it up", src__config="# settings\n\nLEAK-7abc\nrest\n")
    (finding,) = pushed(store)
    assert (finding.rule, finding.path, finding.line) == ("gitleaks: some-maker-key", b"src/config", 3)
    assert (finding.turn, finding.kind, finding.length) == (2, "file", 9)
    assert "LEAK" not in str(finding)
    assert list(stand.left.iterdir()) == [], "nothing of the files stays behind"
    check.allow(store, [finding.fingerprint])
    assert pushed(store) == []


def test_it_is_asked_once_for_all_commits_and_only_about_what_is_new(root: Path, store: Store, stand: Stand) -> None:
    session = store.session("s1")
    first = turn(session, root, "One", a="LEAK-1one\n")
    turn(session, root, "Two", b="LEAK-2two\n")
    turn(session, root, "Three", b="LEAK-2two\nmore\n", c="LEAK-3three\n")
    assert [path for _, path, _ in found(pushed(store, since=first))] == ["b", "c"]
    assert [arguments[0] for arguments in stand.asked()] == ["--help", "dir"]


def test_ours_and_its_findings_are_told_once(root: Path, store: Store, stand: Stand) -> None:
    token = TOKENS["github-token"]
    trouble = f"import re; re.findall = lambda pattern, line: [{token!r}] if {token!r} in line else []"
    stand.install(trouble=trouble)
    turn(store.session("s1"), root, "Go", file=f"{token}\n", more=made(4))
    assert found(pushed(store)) == [("github-token", "file", 1)]


def test_its_guesses_are_left_out(root: Path, store: Store, stand: Stand) -> None:
    turn(store.session("s1"), root, "Go", file="LEAK-generic7\n")
    assert pushed(store) == []


def test_files_keep_their_names_but_cannot_set_it_up(root: Path, store: Store, stand: Stand) -> None:
    """A project's .gitleaks.toml would tell it what to pass over, and a name could be anything."""
    stand.install(
        trouble="print(sorted(os.listdir(f'{arguments[1]}/{n}')[0] for n in os.listdir(arguments[1])), file=open("
        f"{str(stand.log) + '.names'!r}, 'w'))"
    )
    with store.session("s1").turn("Go"):
        for name in (".gitleaks.toml", ".gitleaksignore", "package-lock.json", "-rf", "a\nb", "ü"):
            write(root / name, "LEAK-7abc\n")
    findings = pushed(store)
    assert len(findings) == 6
    names = Path(f"{stand.log}.names").read_text()
    assert names == "['-rf', 'file', 'file', 'file', 'file', 'package-lock.json']\n"


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        ("sys.exit(3)", "status 3"),
        ("open(arguments[arguments.index('--report-path') + 1], 'w').write('{'); sys.exit(0)", "gave no answer"),
        (
            "open(arguments[arguments.index('--report-path') + 1], 'w').write('[{}]'); sys.exit(0)",
            "its report could not be read",
        ),
        ("sys.exit(0)", "No such file"),
        ("import time; time.sleep(600)", "nothing within 0.5 seconds"),
    ],
)
def test_its_failure_neither_stops_a_push_nor_passes_unsaid(
    root: Path, store: Store, stand: Stand, monkeypatch: pytest.MonkeyPatch, trouble: str, why: str
) -> None:
    if "sleep" in trouble:
        monkeypatch.setattr(gitleaks, "LIMIT", 0.5)
    stand.install(trouble=trouble)
    commit = turn(store.session("s1"), root, "Go", file="LEAK-7abc\n" + TOKENS["github-token"])
    said: list[str] = []
    findings = check.check(store, [bytes.fromhex(commit)], say=said.append)
    assert found(findings) == [("github-token", "file", 2)]
    assert len(said) == 1 and why in said[0] and "only snapstore's own rules" in said[0]
    assert list(stand.left.iterdir()) == []


def test_what_it_was_not_asked_about_is_said(
    root: Path, store: Store, stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gitleaks, "LARGEST", 100)
    commit = turn(store.session("s1"), root, "Go", small="LEAK-7abc\n", large="LEAK-7abc\n" * 20)
    said: list[str] = []
    findings = check.check(store, [bytes.fromhex(commit)], say=said.append)
    assert [path for _, path, _ in found(findings)] == ["small"]
    assert said == ["gitleaks was not asked about every file: some are very large, or there are very many"]


def test_without_it_nothing_is_said(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gitleaks, "which", lambda name: None)
    commit = turn(store.session("s1"), root, "Go", file="LEAK-7abc\n")
    said: list[str] = []
    assert check.check(store, [bytes.fromhex(commit)], say=said.append) == [] and said == []


def test_the_command_says_so_and_goes_on(root: Path, tmp_path: Path, stand: Stand) -> None:
    there = str(tmp_path / "there.git")
    git(there, "init", "-q", "--bare", there)
    snap(root, "init")
    snap(root, "remote", "add", "origin", there)
    snap(root, "run", "-m", "Files", "--", "sh", "-c", "echo LEAK-7abc > file")
    refused = snap_json(root, "push", "--json", status=18)
    assert [finding["rule"] for finding in refused["findings"]] == ["gitleaks: some-maker-key"]
    stand.install(trouble="sys.exit(3)")
    done = snap_json(root, "push", "--json")
    assert done["remarks"] == [
        "gitleaks was asked too and gave no answer (status 3): only snapstore's own rules were used"
    ]


@pytest.mark.skipif(which("gitleaks") is None, reason="gitleaks is not installed")
def test_the_real_one_finds_what_it_knows(root: Path, store: Store) -> None:
    secret = f"ghp_{made(36)}"
    commit = turn(store.session("s1"), root, "Set it up", src__config=f"# settings\n\n  - {secret}\n")
    entry = store.shadow.trees.file(store.shadow.commit(bytes.fromhex(commit)).tree, b"src/config")
    assert entry is not None
    said: list[str] = []
    scanners = gitleaks.ExternalScanners(store.shadow.objects, said.append)
    try:
        scanners.add(bytes(20), [(b"src/config", *entry)])
        assert list(scanners.found()) == [("gitleaks: github-pat", bytes(20), b"src/config", 3, secret.encode())]
    finally:
        scanners.close()
    assert said == []
