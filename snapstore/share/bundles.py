"""Export turns to a git bundle, which is a remote that can only be pulled from.

Bundles are for machines without a network between them. A bundle contains every line that is here, also those of other
machines, each with its owner. So a line has one name in a store, whichever way it arrived.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from snapstore.git.objects.notes import REFS as NOTES
from snapstore.git.ref_names import MACHINES, STORES
from snapstore.git.remote import bundles
from snapstore.share.exchange_state import shared_refs
from snapstore.share.secrets import check
from snapstore.share.server.machine import Claims, this_machine, write_claims, write_store
from snapstore.share.server.names_there import Machine
from snapstore.store.handle import StoreHandle

Progress = Callable[[str, int, int], None]


class Exported:
    """The result of an export."""

    __slots__ = ("objects", "path", "refs", "remarks", "size")

    def __init__(self, path: str, refs: dict[str, bytes], objects: int, remarks: list[str]) -> None:
        self.remarks = remarks  # messages for the user
        self.path = path
        self.refs = refs
        self.objects = objects
        self.size = os.path.getsize(path)


def export(store: StoreHandle, path: str, *, since: str | None = None, progress: Progress | None = None) -> Exported:
    """Write a bundle; raise Secret if it would publish one, like a push.

    `since` is an earlier bundle that the reader already has: the new one contains only what is not in it.
    """
    known = list(bundles.read_header(since).refs.values()) if since is not None else []
    shadow = store.shadow
    refs = shared_refs(store)
    refs |= {ref: tip for ref in NOTES if (tip := shadow.refs.read(ref)) is not None}
    remarks: list[str] = []
    found = check.check_refs(store, refs, known, say=remarks.append)
    check.refuse(found, f"snapstore export {path}", "written")
    seconds = max(0, int(store.clock()))
    writer = shadow.objects.writer()
    try:
        refs[f"{STORES}{store.header.id}"] = write_store(writer, store.header.id)
        for claims in _claims(store, list(shared_refs(store))):
            refs[f"{MACHINES}{claims.machine.id}"] = write_claims(shadow, writer, claims, None, seconds)
        pack = shadow.objects.finish(writer)
    except BaseException:
        writer.abandon()
        raise
    try:
        objects = bundles.write(path, shadow.objects, refs, known, progress=progress)
    finally:
        shadow.objects.release(pack)
    return Exported(os.path.abspath(path), refs, objects, remarks)


def _claims(store: StoreHandle, refs: list[str]) -> list[Claims]:
    me, foreign = this_machine(store), store.foreign()
    found = {me.id: Claims(me)}
    for ref in refs:
        id, home, _ = foreign.refs.get(ref, [me.id, ref, ref])
        if id not in found and id:
            about = foreign.machines.get(id, {})
            machine = Machine(id, about.get("name", id), about.get("person", ""), about.get("email", ""))
            found[id] = Claims(machine)
        if id and home:
            found[id].refs[ref] = home
    return [claims for _, claims in sorted(found.items())]
