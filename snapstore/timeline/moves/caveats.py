"""What the record of a turn does not tell: what no move can take back, and whose work it was. Said by whoever undoes it
(G-30, G-31)."""

from __future__ import annotations

import os

from snapstore.worktree.scan.blob_reader import REMOVED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from snapstore.timeline.history.nodes import Node

_SHOWN = 3


def unrecorded(node: Node, changing: set[bytes], told: set[bytes]) -> list[str]:
    """A sentence each. `changing` are the paths that the move writes or removes; `told` those of which something was
    said already, and those named here join them."""
    name = f"turn {node.turn}"
    notes: list[str] = []
    others = beside(node)
    if others:
        notes.append(f"While {name} ran, {others}: what that wrote may be among its files.")
    for item in node.left_out:
        path, was = os.fsencode(item["path"]), item["why"].removeprefix(REMOVED)
        if path in told or (path in changing and was == item["why"]):
            continue
        told.add(path)
        if was == item["why"]:
            notes.append(f"{name} could not record {item['path']} ({was}): it stays as it is.")
        elif path in changing:
            notes.append(f"{name} removed {item['path']} ({was}): only what was recorded of it before comes back.")
        else:
            notes.append(f"{name} removed {item['path']} ({was}): it cannot be brought back.")
    seen = [path for path in node.record.get("first_seen", []) if os.fsencode(path) not in told | changing]
    if seen:
        told.update(map(os.fsencode, seen))
        more = f" and {len(seen) - _SHOWN} more" if len(seen) > _SHOWN else ""
        stays = "it stays as it is" if len(seen) == 1 else "they stay as they are"
        names = ", ".join(seen[:_SHOWN])
        notes.append(f"{names}{more} came into view in {name}, the state before is not known: {stays}.")
    # A turn that was imported knows no more than its conversation tells.
    for item in node.record.get("unknown", []):
        if isinstance(item, dict) and not item.get("path") and item.get("why"):
            notes.append(f"{name} {item['why']}, and stays as it is.")
    return notes


def beside(node: Node) -> str:
    """Whose turns were open when a scan took everything for this one's; empty for nobody's."""
    names = [name for name in node.record.get("beside", []) if isinstance(name, str)]
    if not names:
        return ""
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"a turn of session {', '.join(names[:_SHOWN])}{more} was open"
