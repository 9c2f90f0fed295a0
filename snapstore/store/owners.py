"""Which branches and checkpoints belong to other machines, and are therefore read only.

The document `state/foreign` is written through the journal together with the refs that it describes. A store without
pulled refs has no such document.
"""

from __future__ import annotations

from typing import Any

from snapstore.git.ref_names import ARCHIVE, HEADS, TAGS
from snapstore.git.repository import Shadow
from snapstore.store.state import Documents

DOCUMENT = "foreign"


class Owners:
    """The owners of pulled refs.

    `refs` maps a local ref to its machine and its names elsewhere. `machines` maps a machine to its name and person.
    """

    __slots__ = ("machines", "refs")

    def __init__(
        self, *, machines: dict[str, dict[str, str]] | None = None, refs: dict[str, list[str]] | None = None
    ) -> None:
        self.machines = machines or {}  # id: {"name", "person", "email"}
        self.refs = refs or {}  # local ref: [machine id, name of the ref on that machine, its name on the server]

    def origins(self) -> dict[str, tuple[str, str, str]]:
        return {ref: (machine, home, there) for ref, (machine, home, there) in self.refs.items()}

    def owner(self, ref: str) -> dict[str, str] | None:
        """Return the machine that a ref belongs to, None for this machine."""
        found = self.refs.get(ref)
        if found is None:
            return None
        nobody = {"name": found[0] or "unknown", "person": "", "email": ""}  # no machine claims the ref
        return {"id": found[0], **self.machines.get(found[0], nobody)}

    def sessions(self) -> set[str]:
        """Return the sessions in which other machines have a branch."""
        parts = (ref.split("/") for ref in self.refs if not ref.startswith(TAGS))
        return {part[-2] for part in parts}

    def newest(self, shadow: Shadow, session: str) -> tuple[str, bytes] | None:
        """Return the session's branch that another machine used last, and its tip.

        A session without turns of this machine continues from that branch, not from an empty history.
        """
        places = (f"{HEADS}{session}/", f"{ARCHIVE}{session}/")
        tips = {ref: shadow.refs.read(ref) for ref in self.refs if ref.startswith(places)}
        found = [(shadow.commit(tip).seconds, ref.rpartition("/")[2], tip) for ref, tip in tips.items() if tip]
        return max(found)[1:] if found else None


def read_foreign(documents: Documents) -> Owners:
    return documents.read(Owners, DOCUMENT) or Owners()


def owner_fields(machine: dict[str, str] | None) -> dict[str, Any]:
    """Return the JSON fields for an owner; they are null for this machine."""
    if machine is None:
        return {"machine": None, "person": None}
    return {"machine": machine["name"], "person": machine.get("person") or None}
