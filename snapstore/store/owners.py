"""What of a store's branches and checkpoints is of other machines. They are read, never written to.

One small document, `state/foreign`, written through the journal together with the refs that it tells of. A store that
nothing was pulled into has none, so that recording a turn pays one failed open for it.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from snapstore.store.handle import StoreHandle

DOCUMENT = "foreign"


class Foreign:
    """By local ref, whose it is and what it is called there; by machine, its name and its person."""

    __slots__ = ("machines", "refs")

    def __init__(
        self, *, machines: dict[str, dict[str, str]] | None = None, refs: dict[str, list[str]] | None = None
    ) -> None:
        self.machines = machines or {}  # id: {"name", "person", "email"}
        self.refs = refs or {}  # local ref: [machine's id, the ref at home there, the ref on the server it came from]

    def origins(self) -> dict[str, tuple[str, str, str]]:
        return {ref: (machine, home, there) for ref, (machine, home, there) in self.refs.items()}

    def owner(self, ref: str) -> dict[str, str] | None:
        """The machine that a ref is of, None for one of our own."""
        found = self.refs.get(ref)
        if found is None:
            return None
        nobody = {"name": found[0] or "unknown", "person": "", "email": ""}  # no machine says that it is its own
        return {"id": found[0], **self.machines.get(found[0], nobody)}

    def sessions(self) -> set[str]:
        """The sessions with a line of somebody else."""
        parts = (ref.split("/") for ref in self.refs if not ref.startswith("refs/tags/"))
        return {part[-2] for part in parts}

    def newest(self, store: StoreHandle, session: str) -> tuple[str, bytes] | None:
        """The branch of a session that others used last, and its tip: where the session goes on that only they have
        turns in. A beginning of its own under the same name would lead to none of theirs."""
        places = (f"refs/heads/{session}/", f"refs/snapstore/archive/{session}/")
        tips = {ref: store.shadow.refs.read(ref) for ref in self.refs if ref.startswith(places)}
        found = [(store.shadow.commit(tip).seconds, ref.rpartition("/")[2], tip) for ref, tip in tips.items() if tip]
        return max(found)[1:] if found else None


def read_foreign(store: StoreHandle) -> Foreign:
    return store.documents.read(Foreign, DOCUMENT) or Foreign()


def told(machine: dict[str, str] | None) -> dict[str, Any]:
    """The fields that say in JSON whose something is; for our own they are null."""
    if machine is None:
        return {"machine": None, "person": None}
    return {"machine": machine["name"], "person": machine.get("person") or None}
