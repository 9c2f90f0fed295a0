"""Identify this machine, and read and write what machines claim on a server.

`refs/snapstore/machines/<id>` points to a commit whose tree holds one small document: the machine's name, its person,
its refs on the server with their names on the machine, and the default branches it advanced. Only the machine itself
writes this document.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from snapstore.base import files
from snapstore.base.text import one_line
from snapstore.errors import SnapstoreError
from snapstore.git.objects import commits
from snapstore.git.objects.ids import BLOB, COMMIT, FILE, TREE
from snapstore.git.objects.pack_writer import PackWriter
from snapstore.git.repository import SNAPSTORE, Shadow
from snapstore.share.server.names_there import Machine, split
from snapstore.store.handle import StoreHandle
from snapstore.store.state import encode

_STATE = "machine"
_FILE = b"machine.json"
_LARGEST = 16 << 20  # bytes of a document, enough for a hundred thousand refs
_LONGEST_NAME = 40
_LONGEST_TEXT = 200


class _Document:
    """The format of `state/machine`."""

    __slots__ = ("id", "name")

    def __init__(self, *, id: str, name: str) -> None:
        self.id = id
        self.name = name


class Claims:
    """A machine's claims: its identity, and its refs on the server with local names."""

    __slots__ = ("default_branches", "machine", "refs", "retired")

    def __init__(
        self,
        machine: Machine,
        refs: Mapping[str, str] | None = None,
        retired: Iterable[str] = (),
        default_branches: Iterable[str] = (),
    ) -> None:
        self.machine = machine
        self.default_branches = set(default_branches)  # of the server, advanced by the machine but not its own lines
        self.refs = dict(refs or {})
        self.retired = set(retired)  # refs that the machine has renamed or removed since


def this_machine(store: StoreHandle) -> Machine:
    """Return this machine; its id is created on first use.

    If its name is set later, refs keep the names they already have.
    """
    document = store.documents.read(_Document, _STATE)
    chosen = os.environ.get("SNAPSTORE_MACHINE") or getattr(store.header, "machine_name", "")
    if document is None:
        with store.changing():
            document = store.documents.read(_Document, _STATE)
            if document is None:
                document = _Document(id=os.urandom(4).hex(), name=safe_name(chosen or os.uname().nodename))
                files.write(f"{store.state}/{_STATE}", encode(document))
    name = safe_name(chosen) if chosen else document.name
    return Machine(document.id, name, store.user.name, store.user.email)


def safe_name(text: str) -> str:
    """Return a machine's name in a form that is safe in a ref name: short and plain."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in text.partition(".")[0])
    return plain.strip("-_")[:_LONGEST_NAME] or "machine"


def is_id(text: str) -> bool:
    return 0 < len(text) <= 40 and not set(text) - set("0123456789abcdef")


def read_claims(shadow: Shadow, id: str, commit: bytes) -> Claims | None:
    """Read a machine's claims; skip bad values, because anyone who can push can write them."""
    try:
        entry = shadow.trees.file(shadow.commit(commit).tree, _FILE)
        if entry is None or shadow.objects.header(entry[1])[1] > _LARGEST:
            return None
        data = json.loads(shadow.objects.read_kind(entry[1], BLOB))
    except (SnapstoreError, ValueError, RecursionError):
        return None
    if not isinstance(data, dict) or data.get("id") != id or not is_id(id):
        return None
    refs = data.get("refs")
    found = {
        ref: home
        for ref, home in (refs.items() if isinstance(refs, dict) else ())
        if isinstance(home, str) and split(ref) and split(home)
    }
    retired = data.get("retired")
    name, person, email = (_text(data, key) for key in ("name", "person", "email"))
    gone = [ref for ref in retired if isinstance(ref, str) and ref in found] if isinstance(retired, list) else []
    shown = data.get("default_branches")
    advanced = [ref for ref in shown if isinstance(ref, str)] if isinstance(shown, list) else []
    return Claims(Machine(id, safe_name(name), person, email), found, gone, advanced)


def write_claims(shadow: Shadow, writer: PackWriter, claims: Claims, previous: bytes | None, seconds: int) -> bytes:
    """Write the next commit of the machine's ref and return its id."""
    machine = claims.machine
    document = {
        "format": 1,
        "id": machine.id,
        "name": machine.name,
        "person": machine.person,
        "email": machine.email,
        "refs": dict(sorted(claims.refs.items())),
        "retired": sorted(claims.retired),
        "default_branches": sorted(claims.default_branches),
    }
    blob = writer.add(BLOB, json.dumps(document, indent=1).encode() + b"\n")
    tree = writer.add(TREE, b"%s %s\0%s" % (FILE, _FILE, blob))
    parents = [previous] if previous else []
    return writer.add(COMMIT, commits.encode(tree, parents, SNAPSTORE, SNAPSTORE, seconds, f"Machine {machine.name}\n"))


def write_store(writer: PackWriter, id: str) -> bytes:
    """Write the commit that names the project; its id is the same on every machine."""
    blob = writer.add(BLOB, json.dumps({"format": 1, "id": id}).encode() + b"\n")
    tree = writer.add(TREE, b"%s %s\0%s" % (FILE, b"store.json", blob))
    return writer.add(COMMIT, commits.encode(tree, [], SNAPSTORE, SNAPSTORE, 0, "A snapstore\n"))


def _text(data: dict[str, Any], key: str) -> str:
    value = data.get(key)
    return one_line(value)[:_LONGEST_TEXT] if isinstance(value, str) else ""


def known_name(store: StoreHandle) -> str | None:
    """Return this machine's name, or None before it has one."""
    return this_machine(store).name if store.documents.read(_Document, _STATE) is not None else None
