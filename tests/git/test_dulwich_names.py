"""The names of dulwich that are not public and that we build on: all of them are listed here, with the reason.

A release of dulwich that lacks one, or means something else by it, fails here with a sentence that says where to look.
Runs with the lowest version allowed (scripts/lowest) and with the one that is installed.
"""

from __future__ import annotations

import ast
import inspect
import re
from importlib.metadata import version
from pathlib import Path

import pytest
from dulwich.object_store import DiskObjectStore
from dulwich.objects import Blob, Commit, ObjectID
from dulwich.pack import Pack as DulwichPack
from dulwich.pack import PackData, PackIndex2
from dulwich.refs import DiskRefsContainer, Ref
from helpers import git
from transporting import MAIN, History

import snapstore.git
from snapstore.git.objects.dulwich_store import ObjectStore
from snapstore.git.objects.pack import Pack
from snapstore.git.objects.pack_index import Index
from snapstore.git.objects.store import Objects

HERE = Path(snapstore.git.__file__).parent
DULWICH = f"dulwich {version('dulwich')}"

# By module of ours: the class of dulwich's it extends, and why each name is needed, for no public one does the same.
NAMES: dict[str, tuple[type, dict[str, str]]] = {
    "objects/dulwich_store.py": (
        DiskObjectStore,
        {
            "_pack_cache": "the packs at hand by name; replaced as a whole, never changed, because threads share it",
            "_update_pack_cache": "called when an object is in no known pack; ours lists newest first, needs the pack",
            "_lookup_in_packs": "every question about a packed object goes through it; ours makes no copy of the list",
            "_mark_pack_used": "called for the pack that had the object; ours puts it first",
            "_evict_pack": "called for a pack that vanished; ours does not close it under a reader",
            "_get_loose_object": "every loose object is read through it; ours inflates no more than the object says",
        },
    ),
    "objects/pack.py": (
        DulwichPack,
        {
            "_idx": "the index once it is open; `index` asks the file system each time",
            "_idx_load": "makes the index; ours checks it",
            "_data_load": "makes the data; ours reads small packs and closes without a warning",
        },
    ),
    "objects/pack.py, data": (
        PackData,
        {"_buffer": "the bytes of the pack", "_file": "open, or None once it is closed"},
    ),
    "objects/pack_index.py": (
        PackIndex2,
        {
            "_contents": "the bytes of the index",
            "_fan_out_table": "how many ids begin with at most this byte",
            "_read_fan_out_table": "fills it; ours reads 256 numbers at once",
            "_unpack_name": "an id by its number",
            "_unpack_offset": "an offset by its number; ours refuses one that leads nowhere",
        },
    ),
    "ref_container.py": (
        DiskRefsContainer,
        {
            "_read_loose_ref_file": "every loose ref is read through it; ours refuses a damaged one by name",
            "_remove_packed_ref": "called for a ref that is deleted; ours is durable",
        },
    ),
}
CASES = [(module, kind, name, why) for module, (kind, names) in NAMES.items() for name, why in names.items()]


def private_names(kind: type) -> set[str]:
    """What a class of dulwich's has that is not public: methods, and attributes that its methods set."""
    found = set()
    for base in kind.__mro__:
        if base.__module__.startswith("dulwich"):
            found |= {*vars(base), *re.findall(r"self\.(_\w+)\b", inspect.getsource(base))}
    return {name for name in found if name.startswith("_") and not name.startswith("__")}


def used_names(module: Path) -> set[str]:
    tree = ast.parse(module.read_text())
    attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    return attributes | strings | {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}


@pytest.mark.parametrize(("module", "kind", "name", "why"), CASES)
def test_the_name_is_there(module: str, kind: type, name: str, why: str) -> None:
    assert name in private_names(kind), (
        f"{DULWICH} has no {kind.__name__}.{name} ({why}): snapstore/git/{module} must do without it before this "
        "version is allowed in pyproject.toml"
    )


def test_no_other_private_name_is_used() -> None:
    theirs = set().union(*(private_names(kind) for kind, _ in NAMES.values()))
    for module in {name.partition(",")[0] for name in NAMES}:
        kinds = [(kind, names) for name, (kind, names) in NAMES.items() if name.partition(",")[0] == module]
        listed = {name for _, names in kinds for name in names}
        have = set().union(*(private_names(kind) for kind, _ in kinds))
        # `Pack._contents` is our own method, and no method of dulwich's `Pack`.
        unlisted = (
            (used_names(HERE / module) & have) - listed - ({"_contents"} if module == "objects/pack.py" else set())
        )
        assert not unlisted, f"git/{module} uses {unlisted} of dulwich's: list them here with the reason, or use others"
        assert listed <= used_names(HERE / module), f"git/{module} needs {listed - used_names(HERE / module)} no longer"
    listed = {name for _, names in NAMES.values() for name in names} & theirs
    for path in HERE.rglob("*.py"):
        if str(path.relative_to(HERE)) not in {name.partition(",")[0] for name in NAMES}:
            ours = used_names(path) & (listed - {"_contents", "_file"})
            assert not ours, f"{path.name} uses {ours} of dulwich's: only the classes that extend dulwich's do that"


class Told(ObjectStore):
    """Notes which of the names dulwich calls."""

    def __init__(self, folder: str) -> None:
        self.told: list[str] = []
        super().__init__(folder)

    def __getattribute__(self, name: str) -> object:
        if name in NAMES["objects/dulwich_store.py"][1]:
            object.__getattribute__(self, "told").append(name)
        return object.__getattribute__(self, name)


def test_what_dulwich_does_with_objects_goes_through_ours(tmp_path: Path) -> None:
    history = History(tmp_path / "ours.git", turns=1)
    blob = git(str(history.git_dir), "hash-object", "-w", "--stdin", feed=b"loose").strip()
    store = Told(f"{history.git_dir}/objects")
    try:
        assert isinstance(store[ObjectID(history.tip.hex().encode())], Commit)
        for name in ("_lookup_in_packs", "_update_pack_cache", "_mark_pack_used"):
            assert name in store.told, f"{DULWICH} reads a packed object without {name}: objectstore.py guards nothing"
        store.told.clear()
        (found,) = store.iterobjects_subset([ObjectID(blob)])
        assert isinstance(found, Blob) and found.data == b"loose"
        assert "_get_loose_object" in store.told, f"{DULWICH} reads a loose object without _get_loose_object"
        packs = list(store.packs)
        assert packs and all(isinstance(pack, Pack) for pack in packs), f"{DULWICH} makes packs that are not ours"
        assert isinstance(packs[0].index, Index), f"{DULWICH} opens an index without `_idx_load`"
    finally:
        store.close()


def test_a_pack_that_vanished_is_let_go_of_by_ours(tmp_path: Path) -> None:
    history = History(tmp_path / "ours.git")
    objects = Objects(str(history.git_dir))
    objects.packs()
    for path in list(Path(objects.pack_folder).iterdir()):
        path.rename(tmp_path / path.name)
    told = Told(objects.folder)
    told._pack_cache = {Path(pack.base).name: pack for pack in objects.packs()}
    with pytest.raises(KeyError):
        told[ObjectID(history.tip.hex().encode())]
    assert "_evict_pack" in told.told, f"{DULWICH} lets go of a vanished pack without _evict_pack: it may close it"
    told.close()
    objects.close()


def test_what_dulwich_does_with_refs_goes_through_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    history = History(tmp_path / "ours.git")
    refs = history.shadow.refs.container
    told: list[str] = []
    for name in NAMES["ref_container.py"][1]:
        real = getattr(refs, name)
        monkeypatch.setattr(refs, name, lambda *a, name=name, real=real: (told.append(name), real(*a))[1])
    tip = ObjectID(history.tip.hex().encode())
    assert refs.set_if_equals(Ref(MAIN.encode()), tip, tip)
    assert "_read_loose_ref_file" in told, f"{DULWICH} moves a ref without _read_loose_ref_file"
    assert refs.remove_if_equals(Ref(MAIN.encode()), tip)
    assert "_remove_packed_ref" in told, f"{DULWICH} deletes a ref without _remove_packed_ref"
