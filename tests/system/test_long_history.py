"""Histories of very many turns: moves across them, lists of them, and processes that record them one after another."""

from __future__ import annotations

import gc
import io
import json
import os
import random
import subprocess
import sys
import tracemalloc
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from snapstore import Session, Store
from snapstore.cli.main import main
from snapstore.errors import Conflict, Unknown
from snapstore.git.objects.trees import Change
from snapstore.surface.records.base import document
from snapstore.surface.records.moves import MoveRecord
from snapstore.surface.records.nodes import LogRecord
from snapstore.timeline.history.graph import Graph
from snapstore.timeline.history.history import History
from snapstore.timeline.history.turn_cache import ODD, TurnCache, turns_file
from snapstore.timeline.moves.execute import Mover
from snapstore.timeline.moves.folder_state import _folders_made
from snapstore.timeline.moves.plan import MoveOptions, Plan
from snapstore.timeline.moves.planner import Planner


@pytest.fixture
def few_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    """The caches of long histories serve those of a few turns."""
    for place in ("history.graph", "history.turn_facts", "moves.execute", "moves.planner", "history.commit_cache"):
        monkeypatch.setattr(f"snapstore.timeline.{place}.MANY", 2)


# Moves: what a plan says does not depend on what is filed.


def _write_history(root: Path, session: Session, chance: random.Random, turns: int) -> None:
    """Turns and edits by hand, branches, files and folders that come and go, records of every kind."""
    names = ["a", "b", "c/d", "c/e", "f/g/h", "f/g/i", "j/k"]

    def change(text: str) -> None:
        for name in chance.sample(names, chance.randrange(1, 4)):
            path = root / name
            if path.is_symlink() or path.exists():
                path.unlink()
                if chance.random() < 0.4:
                    for folder in (path.parent, path.parent.parent):
                        if folder != root and not any(folder.iterdir()):
                            folder.rmdir()
                    continue
            path.parent.mkdir(parents=True, exist_ok=True)
            if chance.random() < 0.1:
                path.symlink_to(text)
            else:
                # Often what was there before: a file that ends as it began, with or without edits in between.
                path.write_text(f"{chance.randrange(3)}\n")
                path.chmod(chance.choice([0o644, 0o644, 0o644, 0o755, 0o600]))

    for number in range(turns):
        if chance.random() < 0.3:
            change(f"by hand {number}")
        with session.begin(f"turn {number}") as turn:
            change(f"turn {number}")
            for reply in range(chance.randrange(3)):
                turn.reply(f"reply {reply}")
        if chance.random() < 0.15:
            back = chance.randrange(1, 4)
            try:
                session.move(session.plan_undo(back, policy="force"))
            except (Conflict, Unknown):  # not so many turns, or a link in the way
                continue


def _diff(store: Store, oid: bytes) -> list[Change]:
    commit = store.shadow.commit(oid)
    return list(store.shadow.trees.diff(store.shadow.commit(commit.parents[0]).tree, commit.tree))


class _Unfiled:
    """Answers from commits and records alone, as it was before anything was filed: every record is read."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.cache = TurnCache(f"{store.state}/there-is-none")

    def touched(self, oid: bytes) -> list[Change]:
        return _diff(self._store, oid)

    def replies(self, oids: Iterable[bytes]) -> dict[bytes, int]:
        return dict.fromkeys(oids, ODD)

    def keep(self) -> None:
        pass


def _without_files(session: Session, target: str) -> Plan:
    planner = Planner(session, MoveOptions("force"))
    planner._graph.turns = _Unfiled(session.store)  # type: ignore[assignment]
    return planner.goto(target)


def _said(session: Session, plan: Plan) -> dict[str, Any]:
    """All that a plan says."""
    moves = [(move.path, move.segments, move.action, move.result, move.settled, move.why) for move in plan.paths]
    return {
        **document(MoveRecord.of(session.preview(plan), preview=True)),
        "moves": moves,
        "modes": plan.modes,
        "kept": Mover(session, plan)._folders_to_keep(),
    }


def _made_by(store: Store, plan: Plan, graph: Graph) -> set[bytes]:
    return set().union(*(_folders_made(store.shadow, graph, oid, "empty_folders") for oid in plan.undone))


def _compare(root: Path, seed: int, turns: int, plans: int) -> int:
    """Plans from and to random places, with everything filed, nothing, half, and damaged files."""
    chance = random.Random(seed)
    compared = 0
    with Store.open(root, create=True, session="s") as store:
        session = store.session("s")
        _write_history(root, session, chance, turns)
        nodes = list(Graph(store, "s").nodes)
        filed = Path(turns_file(store.state, "s"))
        whole = filed.read_bytes()
        for _ in range(plans):
            state = chance.choice(["whole", "none", "half", "damaged", "foreign"])
            Path(store.state, "graph-s").unlink(missing_ok=True)
            filed.write_bytes(whole)
            if state == "none":
                filed.unlink()
            elif state == "half":
                filed.write_bytes(whole[: len(whole) // 2])
            elif state == "damaged":
                at = chance.randrange(len(whole))
                filed.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
            elif state == "foreign":
                filed.write_bytes(b"of another program")
            target = chance.choice(nodes)
            former = _without_files(session, target.hex())
            unfiled = Graph(store, "s")
            unfiled.turns = _Unfiled(store)  # type: ignore[assignment]
            for _ in range(2):  # the second time with what the first has filed
                plan = session.plan_goto(target.hex(), policy="force")
                assert _said(session, plan) == _said(session, former), (seed, state, target.hex())
                assert _made_by(store, plan, Graph(store, "s")) == _made_by(store, plan, unfiled)
            compared += 2
            if not plan.conflicts and chance.random() < 0.3:
                session.move(plan)
    return compared


@pytest.mark.parametrize("seed", range(4))
def test_plans_are_the_same_whatever_is_filed_of_the_turns(seed: int, root: Path, few_are_many: None) -> None:
    assert _compare(root, seed, turns=15, plans=10) == 20


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(100, 140))
def test_plans_are_the_same_whatever_is_filed_of_many_turns(seed: int, root: Path, few_are_many: None) -> None:
    print(f"{_compare(root, seed, turns=80, plans=40)} plans compared")


def test_turns_file_what_they_touched(root: Path, store: Store) -> None:
    """As the trees tell it, and so that a move across all of them reads no tree for it."""
    session = store.session("s")
    _write_history(root, session, random.Random(7), 30)
    cache = TurnCache(turns_file(store.state, "s"))
    cache.open()
    nodes = [node for node in Graph(store, "s").nodes.values() if node.parent is not None]
    assert len(nodes) > 30
    for node in nodes:
        assert list(cache.touched[node.oid]) == _diff(store, node.oid)
        assert cache.rows[node.oid][:3] == (node.oid, node.parent, node.tree)


def test_a_store_that_cannot_be_written_or_is_full_files_nothing_and_fails_nothing(tmp_path: Path) -> None:
    cache = TurnCache(f"{tmp_path}/gone/file")
    cache.add(replies={b"x" * 20: 3})
    cache.keep()
    (tmp_path / "folder").mkdir()
    cache = TurnCache(f"{tmp_path}/folder")
    cache.open()
    cache.add(replies={b"x" * 20: 3})
    cache.keep()
    assert os.listdir(tmp_path) == ["folder"]


# Lists.


def _turns(session: Session, path: Path, count: int) -> None:
    for number in range(count):
        turn = session.begin(f"turn {number}")
        turn.touch(path)
        path.write_text(f"{number}\n")
        turn.end()


def _printed(*words: str) -> str:
    out = io.TextIOWrapper(io.BytesIO(), "utf-8")
    with redirect_stdout(out):
        assert main([*words]) == 0
        out.flush()
        return out.buffer.getvalue().decode()  # type: ignore[attr-defined]


def test_the_log_reads_each_turn_when_it_is_its_turn(root: Path, store: Store) -> None:
    """The first node costs one node, however many there are; and none is kept."""
    session = store.session()
    _turns(session, root / "file", 40)
    reads = 0
    read = store.shadow.objects.read

    def counted(oid: bytes) -> tuple[bytes, bytes]:
        nonlocal reads
        reads += 1
        return read(oid)

    store.shadow.objects.read = counted  # type: ignore[method-assign]
    nodes = History(session).newest_first()
    assert next(nodes).turn == 40
    assert reads < 12
    assert [node.turn for node in nodes] == [*range(39, 0, -1), None]
    assert reads > 60


def test_the_document_of_a_log_is_that_of_its_nodes(root: Path, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    session = store.session()
    _turns(session, root / "file", 5)
    session.move(session.plan_undo(2))
    monkeypatch.chdir(root)
    for words, limit in (
        (["log", "--json"], None),
        (["log", "--json", "-n", "2"], 2),
        (["log", "--json", "--stat"], None),
    ):
        history = History(session)
        nodes = history.nodes(limit, counts="--stat" in words)
        expected = document(LogRecord.of(history, nodes))
        assert _printed(*words) == json.dumps(expected) + "\n"
        assert [node.undone for node in nodes][-2:] == [True, True]


def test_the_log_in_a_pipe_that_is_closed_ends(root: Path, store: Store) -> None:
    """Its first line is there before the rest is read, and nobody hears of a broken pipe."""
    session = store.session()
    _turns(session, root / "file", 80)
    command = [sys.executable, "-m", "snapstore", "log"]
    log = subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert log.stdout is not None and log.stderr is not None
    assert b"turn 79" in log.stdout.readline()
    log.stdout.close()
    with log.stderr:
        assert log.stderr.read() == b""
    log.wait(timeout=60)


# Processes that stay.


def _peak_of_log(session: Session, count: int) -> int:
    gc.collect()
    tracemalloc.start()
    for _ in History(session).newest_first(count):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def test_the_log_takes_no_more_memory_for_more_turns(root: Path, store: Store) -> None:
    session = store.session()
    _turns(session, root / "file", 120)
    assert _peak_of_log(session, 5)  # once, so that every module is loaded
    few, many = _peak_of_log(session, 20), _peak_of_log(session, 120)
    assert many - few < 100 * 4000, (few, many)


def _grown(root: Path, first: int, more: int) -> float:
    """Bytes that a process grows by with each of some turns, once it has recorded the first of them."""
    files = [root / f"folder{number % 10}" / f"file{number}" for number in range(100)]
    for path in files:
        path.parent.mkdir(exist_ok=True)
        path.write_text("begin\n")
    chance = random.Random(1)
    with Store.open(root, create=True, session="s") as store:
        session = store.session("s")

        def turns(count: int) -> int:
            for number in range(count):
                turn = session.begin(f"turn {number}")
                chosen = chance.sample(files, 3)
                turn.touch(*chosen)
                for path in chosen:
                    path.write_text(f"{chance.random()}\n")
                turn.end()
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            before = turns(first)
            return (turns(more) - before) / more
        finally:
            tracemalloc.stop()


def test_a_process_that_records_turns_does_not_grow(root: Path) -> None:
    assert _grown(root, 260, 150) < 6000


@pytest.mark.deep
def test_a_process_that_records_very_many_turns_does_not_grow(root: Path) -> None:
    grown = _grown(root, 300, 1000)
    print(f"{grown:.0f} bytes a turn")
    assert grown < 700
