"""Measures snapstore against a shadow repository driven by the git program, in the same run on the same trees.

Ratios of medians only: machines are noisy. Everything happens in a temporary folder with a home of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

from bench_agent import agent
from bench_before import AGE, compare
from bench_diff import diff
from bench_hook import hooks, transcripts
from bench_keep import keep
from bench_moves import moves, tree_of_many
from bench_page import page
from bench_share import share

from snapstore import Store

RUNS = 7


@dataclass
class Row:
    work: str
    size: int
    ours_ms: float
    git_ms: float
    ratio: float
    reach: str
    ok: bool | None


def make_tree(folder: Path, count: int) -> None:
    """Source-like text, sizes from a line to 100 KB. Folders as in two well-known projects: Django has 7,085 files,
    about three a folder; Rust 62,163, about fourteen, with a few folders of hundreds."""
    most = 26 if count > 20_000 else 5
    chance = random.Random(count)
    words = [
        "def",
        "return",
        "if",
        "else",
        "for",
        "while",
        "import",
        "class",
        "self",
        "value",
        "result",
        "name",
        "path",
        "open",
        "read",
        "write",
        "data",
        "node",
    ]
    lines = [
        "    " * chance.randrange(4) + " ".join(chance.choices(words, k=chance.randrange(2, 9))) + f" {n}\n"
        for n in range(5000)
    ]
    made = 0
    folders = [folder]
    while made < count:
        parent = chance.choice(folders[-60:])
        here = parent / f"part{len(folders)}"
        if len(here.relative_to(folder).parts) > 6:
            here = folder / f"part{len(folders)}"
        here.mkdir(parents=True)
        folders.append(here)
        for n in range(min(count - made, 300 if len(folders) % 397 == 0 else chance.randrange(1, most))):
            size = int(min(2500, max(1, chance.lognormvariate(4.3, 1.1))))
            (here / f"module_{n}.py").write_text("".join(chance.choices(lines, k=size)))
            made += 1


def median(work: Callable[[], object], before: Callable[[], object] = lambda: None, runs: int = RUNS) -> float:
    """Milliseconds; `before` prepares each run and is not measured."""
    times = []
    for _ in range(runs):
        before()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


class GitShadow:
    """The yardstick: git's own commands on a bare repository with the project as its work tree."""

    def __init__(self, git_dir: Path, tree: Path) -> None:
        self.git_dir, self.tree = git_dir, tree
        self.parent: str | None = None

    def create(self) -> None:
        shutil.rmtree(self.git_dir, ignore_errors=True)
        self.parent = None

    def snapshot(self) -> None:
        if not self.git_dir.exists():
            git(self.tree, "init", "-q", "--bare", str(self.git_dir))
        self.git("add", "-A")
        tree = self.git("write-tree")
        parent = ["-p", self.parent] if self.parent else []
        self.parent = self.git("commit-tree", tree, *parent, "-m", "turn")
        self.git("update-ref", "refs/heads/main", self.parent)

    def git(self, *arguments: str) -> str:
        command = ["git", f"--git-dir={self.git_dir}", f"--work-tree={self.tree}", *arguments]
        return subprocess.run(command, cwd=self.tree, check=True, capture_output=True, text=True).stdout.strip()


class Bench:
    def __init__(self, work: Path) -> None:
        self.work = work
        self.home = work / "stores"
        self.rows: list[Row] = []
        self.named_by_size: dict[int, float] = {}

    def add(self, work: str, size: int, ours: float, git: float, reach: float | None) -> None:
        ratio = git / ours if ours else 0.0
        wanted = f"{reach:g}x" if reach else "-"
        self.rows.append(
            Row(work, size, round(ours, 2), round(git, 2), round(ratio, 2), wanted, ratio >= reach if reach else None)
        )
        print_row(self.rows[-1])

    def note(self, work: str, size: int, ours: float, git: float, ratio: float, reach: str, ok: bool | None) -> None:
        self.rows.append(Row(work, size, round(ours, 2), round(git, 2), round(ratio, 2), reach, ok))
        print_row(self.rows[-1])

    def tree(self, tree: Path, size: int) -> None:
        fast = size >= 7000
        runs = RUNS
        shadow = GitShadow(self.work / "shadow.git", tree)
        files = sorted(path for path in tree.rglob("*.*") if path.is_file() and ".git" not in path.parts)
        git_first = median(shadow.snapshot, shadow.create, runs)
        ours_first = median(lambda: Store.open(tree, create=True).close(), self.forget, runs)
        self.add("first snapshot, plain folder", size, ours_first, git_first, 3 if fast else None)
        self.turns(tree, size, files, shadow)
        self.checkout(tree, size, files, shadow, git_first)

    def forget(self) -> None:
        shutil.rmtree(self.home, ignore_errors=True)
        os.sync()

    def turns(self, tree: Path, size: int, files: list[Path], shadow: GitShadow) -> None:
        chance = random.Random(1)
        self.forget()
        store = Store.open(tree, create=True)
        session = store.session("bench")

        def edit(count: int = 3) -> list[Path]:
            chosen = chance.sample(files, count)
            for path in chosen:
                with path.open("a") as file:
                    file.write(f"# {chance.random()}\n")
            return chosen

        def named() -> None:
            turn = session.begin("named")
            turn.touch(*chance.sample(files, 3))
            for path in turn.session.store.documents.open_turn("bench").named:
                with (tree / path).open("a") as file:
                    file.write(f"# {chance.random()}\n")
            time.sleep(AGE)

        def scanned() -> None:
            session.begin("scanned")
            edit()
            time.sleep(AGE)

        git_turn = median(shadow.snapshot, edit, 15)
        ours_named = median(session.end, named, 25)
        self.named_by_size[size] = ours_named
        self.add("end of a turn, 3 named files", size, ours_named, git_turn, {7000: 15, 60000: 20}.get(size))
        ours_scan = median(session.end, scanned, 15)
        self.add("end of a turn by scan", size, ours_scan, git_turn, 1.3 if size >= 7000 else None)
        store.close()
        if size == 7000:
            self.growth(tree, files)
            self.process(tree, files)

    def checkout(self, tree: Path, size: int, files: list[Path], shadow: GitShadow, git_first: float) -> None:
        """The same tree as a git checkout, packed as a clone is, with 3 dirty and 3 new files."""
        git(tree, "init", "-q")
        git(tree, "add", "-A")
        git(tree, "commit", "-q", "-m", "all")
        git(tree, "gc", "-q")
        for path in files[:3]:
            path.write_text("dirty\n")
            (path.parent / f"new_{path.name}").write_text("new\n")
        time.sleep(0.05)
        git(tree, "status", "-s")
        ours = median(lambda: Store.open(tree, create=True).close(), self.forget)
        self.add("first snapshot, git checkout", size, ours, git_first, 30 if size >= 7000 else None)
        shutil.rmtree(tree / ".git")

    def growth(self, tree: Path, files: list[Path]) -> None:
        """100 turns of 3 files: our store against git's loose one, in bytes on disk."""
        self.forget()
        shadow = GitShadow(self.work / "growth.git", tree)
        shadow.create()
        shadow.snapshot()
        store = Store.open(tree, create=True)
        chance = random.Random(2)
        for number in range(100):
            turn = store.session("growth").begin(f"turn {number}")
            chosen = chance.sample(files, 3)
            turn.touch(*chosen)
            for path in chosen:
                with path.open("a") as file:
                    file.write(f"# {number}\n")
            turn.end()
            shadow.snapshot()
        ours, theirs = disk_use(Path(store.folder)), disk_use(shadow.git_dir)
        store.close()
        self.note(
            "store after 100 turns, KB", len(files), ours / 1024, theirs / 1024, theirs / ours, "1x", ours <= theirs
        )

    def process(self, tree: Path, files: list[Path]) -> None:
        """One `snapstore turn end` process after named files, in bare interpreter starts."""
        chance = random.Random(3)
        command = [sys.executable, "-m", "snapstore"]
        script = Path(sys.executable).with_name("snapstore")
        if script.exists():
            command = [str(script)]

        def begin() -> None:
            subprocess.run([*command, "turn", "begin", "-m", "p"], cwd=tree, check=True, capture_output=True)
            chosen = [str(path) for path in chance.sample(files, 3)]
            subprocess.run([*command, "turn", "touch", *chosen], cwd=tree, check=True, capture_output=True)
            for path in chosen:
                with open(path, "a") as file:
                    file.write(f"# {chance.random()}\n")

        end = [*command, "turn", "end"]
        ours = median(lambda: subprocess.run(end, cwd=tree, check=True, capture_output=True), begin, 15)
        bare = median(lambda: subprocess.run([sys.executable, "-I", "-c", "pass"], check=True), runs=15)
        self.note("`turn end` process, bare starts", len(files), ours, bare, ours / bare, "<= 8", ours / bare <= 8)

    def large_file(self, size: int = 2 << 30) -> None:
        """A 2 GiB file in and out, in a process of its own: its peak memory in MB."""
        self.forget()
        folder = self.work / "large"
        folder.mkdir()
        block = random.Random(4).randbytes(1 << 20)
        with (folder / "video.bin").open("wb") as file:
            for number in range(size >> 20):
                file.write(number.to_bytes(8, "big") + block[8:])
        start = time.perf_counter()
        done = subprocess.run(
            [sys.executable, __file__, "--large", str(folder)], check=True, capture_output=True, text=True
        )
        took = (time.perf_counter() - start) * 1000
        peak = float(done.stdout)
        self.note("2 GiB in and out, peak MB", 1, peak, took, peak, "< 200", peak < 200)
        shutil.rmtree(folder)


def large(folder: str) -> None:
    from hashlib import sha1

    store = Store.open(folder, create=True)
    store.configure(max_file_size=0)
    session = store.session("large")
    session.begin("in")
    commit = store.shadow.commit(session.end(scan=True))
    before = store.shadow.commit(commit.parents[0]) if commit.parents else commit
    entry = store.shadow.trees.file(commit.tree, b"video.bin") or store.shadow.trees.file(before.tree, b"video.bin")
    assert entry is not None
    out, inp = sha1(), sha1()
    for piece in store.shadow.objects.stream(entry[1]):
        out.update(piece)
    with open(f"{folder}/video.bin", "rb") as file:
        while piece := file.read(1 << 20):
            inp.update(piece)
    assert out.digest() == inp.digest()
    # Not getrusage: its maximum comes along from the process that started this one.
    with open("/proc/self/status") as file:
        print(next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024)


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", "-c", "gc.auto=0", *arguments], cwd=folder, check=True, capture_output=True)


def disk_use(folder: Path) -> int:
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def print_row(row: Row) -> None:
    mark = {True: "ok", False: "MISSED", None: ""}[row.ok]
    print(
        f"{row.work:34} {row.size:>6} {row.ours_ms:>10.1f} {row.git_ms:>10.1f} {row.ratio:>8.1f} {row.reach:>7} {mark}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parts = ["turns", "moves", "before", "diff", "hook", "keep", "share", "page", "tui", "agent"]
    parser.add_argument("parts", nargs="*", default=parts, help=f"{', '.join(parts)}; all unless given")
    parser.add_argument("--json", metavar="FILE", help="write the rows there")
    parser.add_argument("--sizes", default="500,7000,60000", help="made trees to measure, by number of files")
    parser.add_argument("--tree", help="measure a copy of this folder as well")
    parser.add_argument(
        "--before", metavar="PATH", help="another checkout, set up, that `before` and `agent` compare with"
    )
    parser.add_argument("--no-large", action="store_true", help="leave out the 2 GiB file")
    parser.add_argument("--large", help=argparse.SUPPRESS)
    options = parser.parse_args()
    unknown = set(options.parts) - set(parts)
    if unknown:
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    if options.large:
        large(options.large)
        return
    with tempfile.TemporaryDirectory(prefix="snapstore-bench-") as name:
        work = Path(name)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program has its bytecode
        os.environ.update(HOME=name, SNAPSTORE_HOME=f"{name}/stores", GIT_CONFIG_NOSYSTEM="1")
        os.environ["SNAPSTORE_DAEMON"] = "0"  # `hook` measures with and without the warm process
        (work / ".gitconfig").write_text("[user]\n\tname = Bench\n\temail = bench@example.com\n")
        bench = Bench(work)
        print(f"{'work':34} {'files':>6} {'ours ms':>10} {'git ms':>10} {'ratio':>8}  {'reach':>6}")
        sizes = [int(size) for size in options.sizes.split(",") if size]
        for size in sizes if {"turns", "moves", "hook", "keep", "share"} & set(options.parts) else ():
            tree = work / f"tree{size}"
            tree.mkdir()
            make_tree(tree, size)
            if "turns" in options.parts:
                bench.tree(tree, size)
            if "moves" in options.parts:
                moves(bench, median, tree, size)
            if "hook" in options.parts:
                hooks(bench, median, tree, size)
            if "share" in options.parts:
                share(bench, tree, size)
            if "keep" in options.parts and size == 7000:
                keep(bench, tree, size)
            shutil.rmtree(tree)
        for size in sizes if options.before and "before" in options.parts else ():
            compare(bench, make_tree, size, options.before)
        if options.tree:
            tree = work / "given"
            shutil.copytree(options.tree, tree, symlinks=True, ignore=shutil.ignore_patterns(".git"))
            bench.tree(tree, sum(path.is_file() for path in tree.rglob("*")))
        if {500, 60000} <= bench.named_by_size.keys():
            small, big = bench.named_by_size[500], bench.named_by_size[60000]
            bench.note("named turn, 60,000 against 500", 60000, big, small, big / small, "<= 1.5", big / small <= 1.5)
        if "moves" in options.parts:
            tree_of_many(bench, median)
        if "hook" in options.parts:
            transcripts(bench)
        if "diff" in options.parts:
            diff(bench, median)
        if "agent" in options.parts:
            agent(bench, options.before)
        if "page" in options.parts:
            page(bench)
        if "tui" in options.parts:
            from bench_tui import tui

            tui(bench)
        if not options.no_large and "turns" in options.parts:
            bench.large_file()
        if options.json:
            Path(options.json).write_text(json.dumps([asdict(row) for row in bench.rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
