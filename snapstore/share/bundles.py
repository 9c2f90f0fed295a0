"""Turns in a file, for machines with no network between them: a git bundle, read as a remote that one only pulls from.

Everything that is here goes into it, others' lines too, each with the word whose it is. So it does not matter by which
way a line came: it has one name in a store.
"""

from __future__ import annotations

import os

from snapstore.git.objects.notes import REFS as NOTES
from snapstore.git.remote import bundles
from snapstore.share.exchange_state import shared_refs
from snapstore.share.secrets import check
from snapstore.share.server.machine import PREFIX, STORES, Claims, this_machine, write_claims, write_store
from snapstore.share.server.names_there import Machine

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from snapstore.store.handle import StoreHandle

    Progress = Callable[[str, int, int], None]


class Exported:
    __slots__ = ("objects", "path", "refs", "remarks", "size")

    def __init__(self, path: str, refs: dict[str, bytes], objects: int, remarks: list[str]) -> None:
        self.remarks = remarks  # what the look for secrets could not do
        self.path = path
        self.refs = refs
        self.objects = objects
        self.size = os.path.getsize(path)


def export(store: StoreHandle, path: str, *, since: str | None = None, progress: Progress | None = None) -> Exported:
    """Writes a bundle. With `since`, an earlier one that the reader has already, only what came after it. Raises Secret
    where it would publish one, as a push does."""
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
            refs[f"{PREFIX}{claims.machine.id}"] = write_claims(shadow, writer, claims, None, seconds)
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
