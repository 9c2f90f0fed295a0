"""Branch descriptions in the store's git config, as shown by git (M-15).

A person reads and edits a description with `git branch --edit-description`. The config file is edited line by line,
since dulwich's writer drops comments and quotes (test_branch_descriptions.py). Each line that snapstore writes ends
with a marker comment. git drops the comment when a person sets the description, so a line without the marker belongs to
that person. A description follows its branch when the ref is renamed, also out of `refs/heads`. Outside `refs/heads`
the section is named by the full ref, which git ignores.

Every change is made under git's own lock, `config.lock`. If another process holds the lock, the change is skipped,
because a description is a convenience. Only `forget` must not skip its change (`rewritten`, applied by the journal).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from snapstore.base.files import sync_folder, write_all
from snapstore.base.text import one_line
from snapstore.git.config_file import read_config
from snapstore.git.maintenance.running_git import git_at_work
from snapstore.git.ref_names import HEADS

_MARK = "# set by snapstore"
_SECTION = re.compile(r"\s*\[")
_BRANCH = re.compile(r'(\s*\[\s*branch\s+")((?:[^"\\]|\\.)*)("\s*\]\s*)', re.IGNORECASE)
_DESCRIPTION = re.compile(r"(\s*description\s*=)(.*)", re.IGNORECASE | re.DOTALL)
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}
_DEAD = 10.0  # seconds; git holds the lock for milliseconds
_LONGEST = 200


def title_of(prompt: str) -> str:
    """Return the first non-empty line of a prompt, shortened to `_LONGEST`."""
    title = next((one_line(line) for line in prompt.splitlines() if one_line(line)), "")
    return title if len(title) <= _LONGEST else title[: _LONGEST - 1] + "…"


def describe(git_dir: str, ref: str, title: str) -> None:
    """Describe a branch that has no description. Call under the store's lock."""
    header = f'[branch "{_escaped(_name(ref))}"]\n'
    if not title or (header in _read(git_dir) and _is_described(git_dir, ref)):
        return
    line = f'\tdescription = "{_escaped(title)}" {_MARK}\n'
    _edit(git_dir, lambda text: text.removesuffix("\n") + "\n" + header + line)


def follow(git_dir: str, travels: Mapping[str, str], gone: Iterable[str]) -> None:
    """Rename descriptions along with their refs, and remove those of deleted refs.

    Call under the store's lock, after the refs have moved.
    """
    ways = {_name(source): _name(target) for source, target in travels.items()}
    lost = {_name(ref) for ref in gone}

    def changed(text: str) -> str:
        return "".join(_travelled(_sections(text), ways, lost))

    if any(f'"{_escaped(name)}"' in (text := _read(git_dir)) for name in (*ways, *lost)) and changed(text) != text:
        _edit(git_dir, changed)


def rewritten(git_dir: str, change: Callable[[str], str | None]) -> str | None:
    """Return the config text with `change` applied to every description.

    A description for which `change` returns None is removed. Returns None if the text stays the same.
    """
    text = _read(git_dir)
    made: list[str] = []
    for name, lines in _sections(text):
        kept = []
        for line in lines:
            found = _DESCRIPTION.fullmatch(line) if name is not None else None
            before = _value(found[2]) if found is not None else ""
            after = change(before) if found is not None else before
            if found is not None and after != before:
                mark = f" {_MARK}" if _is_ours(line) else ""
                line = f'{found[1]} "{_escaped(after)}"{mark}\n' if after is not None else ""
            kept.append(line)
        made += _unless_empty(kept, lines)
    return "".join(made) if "".join(made) != text else None


def sweep(git_dir: str) -> None:
    """Remove copies of the config that killed processes left behind.

    The copies contain old descriptions.
    """
    for name in ("config.new", "config.snapstore", "config.lock"):
        path = f"{git_dir}/{name}"
        if os.path.lexists(path) and (name != "config.lock" or git_at_work(git_dir) is None):
            os.unlink(path)


# Reading and writing the config file.


def _read(git_dir: str) -> str:
    with open(f"{git_dir}/config", encoding="utf-8", errors="surrogateescape", newline="") as file:
        return file.read()


def _edit(git_dir: str, change: Callable[[str], str]) -> None:
    path = f"{git_dir}/config"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        fd = os.open(f"{path}.lock", flags, 0o600)
    except FileExistsError:
        if not _is_dead(git_dir):
            return
        os.unlink(f"{path}.lock")
        fd = os.open(f"{path}.lock", flags, 0o600)
    try:
        try:
            write_all(fd, change(_read(git_dir)).encode("utf-8", "surrogateescape"))
            os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(f"{path}.lock", path)
    except BaseException:
        os.unlink(f"{path}.lock")
        raise
    sync_folder(git_dir)


def _is_dead(git_dir: str) -> bool:
    """Return whether `config.lock` was left by a killed process."""
    try:
        age = time.time() - os.stat(f"{git_dir}/config.lock").st_mtime
    except FileNotFoundError:
        return True
    return age > _DEAD and git_at_work(git_dir) is None


def _is_described(git_dir: str, ref: str) -> bool:
    try:
        read_config(git_dir).get((b"branch", os.fsencode(_name(ref))), b"description")
    except KeyError:
        return False
    return True


# Parsing and formatting the config text.


def _name(ref: str) -> str:
    return ref.removeprefix(HEADS)


def _sections(text: str) -> Iterator[tuple[str | None, list[str]]]:
    """Yield each section's branch name and lines, header first.

    The name is None for a section that is not a branch's. One item of the lines is one setting, which may span several
    lines of text.
    """
    name: str | None = None
    lines: list[str] = []
    for line in _lines(text):
        if _SECTION.match(line):
            yield name, lines
            header = _BRANCH.fullmatch(line)
            name = re.sub(r"\\(.)", r"\1", header[2]) if header is not None else None
            lines = []
        lines.append(line)
    yield name, lines


def _lines(text: str) -> Iterator[str]:
    whole = ""
    for line in re.findall(r"[^\n]*\n|[^\n]+", text):
        whole += line
        body = whole.rstrip("\r\n")
        if whole.lstrip().startswith(("#", ";")) or (len(body) - len(body.rstrip("\\"))) % 2 == 0:
            yield whole
            whole = ""
    yield from filter(None, [whole])


def _travelled(
    sections: Iterable[tuple[str | None, list[str]]], ways: Mapping[str, str], lost: set[str]
) -> Iterator[str]:
    arriving = set(ways.values())
    for name, lines in sections:
        if name is not None and name in ways:
            header = _BRANCH.fullmatch(lines[0])
            assert header is not None
            yield from [f"{header[1]}{_escaped(ways[name])}{header[3]}", *lines[1:]]
        elif name in lost and name is not None and name.startswith("refs/"):
            continue  # only snapstore names a section by a full ref, so no other program wrote here
        elif name in lost or name in arriving:
            yield from _unless_empty([line for line in lines if not _is_ours(line)], lines)
        else:
            yield from lines


def _unless_empty(lines: list[str], before: list[str]) -> list[str]:
    """Return a section's lines, or none if the change left only its header."""
    left = [line for line in lines if line.strip()]
    return [] if len(left) == 1 and lines != before and left[0] == before[0] else lines


def _is_ours(line: str) -> bool:
    return line.rstrip().endswith(_MARK) and _DESCRIPTION.fullmatch(line) is not None


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")


def _value(text: str) -> str:
    """Return the value that git parses from the text after the equals sign."""
    found: list[str] = []
    quoted = False
    characters = iter(text.strip())
    for character in characters:
        if character == "\\":
            escaped = next(characters, "")
            found.append(_ESCAPES.get(escaped, "" if escaped in "\r\n" else escaped))
        elif character == '"':
            quoted = not quoted
        elif character in "#;" and not quoted:
            return "".join(found).rstrip()
        else:
            found.append(character)
    return "".join(found)
