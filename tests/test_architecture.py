"""The shape of the program: who imports whom, how large packages and modules are, and that every id cited exists."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from snapstore.agents.known.registry import AGENTS

PROJECT = Path(__file__).parent.parent
SOURCE = PROJECT / "snapstore"
MOST_MODULES = 15
COMMANDS = SOURCE / "cli/commands"  # one module per command, however many commands there are
MOST_LINES = 400
MOST_LINES_OF_TESTS = 1000
DOCSTRING_LINES = range(5, 16)
REQUIREMENT = re.compile(r"\b(?:(?:S[0-4]|G|P|M)-\d\d|C\d+)\b")

PACKAGES = sorted({path.parent for path in SOURCE.rglob("*.py")})


def name_of(path: Path) -> str:
    return str(path.relative_to(PROJECT))


def imports_of_ours(tree: ast.Module) -> Iterator[str]:
    """Yield what a module imports from snapstore outside of functions."""
    waiting: list[ast.AST] = [tree]
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name.partition(".")[0] == "snapstore")
            elif isinstance(node, ast.ImportFrom) and (node.level or node.module.partition(".")[0] == "snapstore"):
                yield node.module or "."
            elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                waiting.append(node)


# Imports


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as main; main()", "--no-cache"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_imports_go_down_the_layers_and_form_no_cycle() -> None:
    """The contracts stand in pyproject.toml."""
    done = lint_imports(PROJECT)
    assert done.returncode == 0, done.stdout[done.stdout.find("Contracts\n") :] + done.stderr


HIDDEN_IMPORTS = (
    "def function():\n    from house.upper import x\n",
    "TYPE_CHECKING = False\nif TYPE_CHECKING:\n    from house.upper import x\n",
)
CONTRACT = """
[importlinter]
root_package = house

[importlinter:contract:layers]
name = layers
type = layers
containers = house
layers =
    upper
    lower
"""


@pytest.mark.parametrize("code", HIDDEN_IMPORTS)
def test_imports_inside_functions_and_for_types_count(tmp_path: Path, code: str) -> None:
    """The test above relies on that."""
    (tmp_path / "house").mkdir()
    for name, text in (("__init__", ""), ("upper", ""), ("lower", code)):
        (tmp_path / f"house/{name}.py").write_text(text)
    (tmp_path / ".importlinter").write_text(CONTRACT)
    done = lint_imports(tmp_path)
    assert done.returncode == 1 and "house.lower -> house.upper" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("package", [package for package in PACKAGES if package != SOURCE], ids=name_of)
def test_a_package_alone_loads_nothing_of_ours(package: Path) -> None:
    """Else importing one module would load its whole package, and every hook would pay for that."""
    assert list(imports_of_ours(ast.parse((package / "__init__.py").read_text()))) == []


# The command line

PARSERS = {"argparse", "optparse", "getopt"}
# What a function of a surface may import: the records need pydantic, which the everyday commands do without when there
# is no warm process (test_a_move_loads_nothing_it_does_not_need); the screens need libraries that may be missing.
FOR_LATER = (
    "snapstore.surface.records",
    "snapstore.surface.tree_document",
    "snapstore.web",
    "snapstore.tui",
    "snapstore.mcp",
    "rich",
)
# Hooks start here, and must neither load what they do not need nor fail over it.
FIRST_STEPS = {"cli/main.py", "cli/hook.py", "cli/warm/preload.py"}


def test_click_is_the_only_parser_of_command_lines() -> None:
    """The client of the warm process looks for the command word only, which decides nothing but where it runs."""
    reads_arguments = set()
    for path in SOURCE.rglob("*.py"):
        place = str(path.relative_to(SOURCE))
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                assert not PARSERS & {alias.name for alias in node.names}, place
            elif isinstance(node, ast.ImportFrom):
                assert node.module not in PARSERS, place
            elif isinstance(node, ast.Attribute) and node.attr in ("argv", "orig_argv"):
                reads_arguments.add(place)
    assert reads_arguments == {
        "__main__.py",  # hands them on
        "cli/main.py",  # hands them on, and restarts in UTF-8 with them
        "daemon/client.py",  # sends the program's name
        "daemon/child.py",  # takes it over
        "daemon/server.py",  # asks whether the interpreter was started by `-c`
        "agents/install/locations.py",  # the script to write into hooks
        "store/lock.py",  # tells others which command holds the lock
    }


def test_a_document_is_described_once() -> None:
    """By a pydantic record in surface/records: no object of the program makes JSON of itself."""
    makers = {
        f"{path.relative_to(SOURCE)}: {node.name}"
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name in ("as_json", "to_json", "as_dict", "to_dict")
    }
    assert makers == set()


@pytest.mark.parametrize("room", ["cli", "daemon"])
def test_imports_stand_at_the_top(room: str) -> None:
    hidden = set()
    for path in (SOURCE / room).rglob("*.py"):
        place = str(path.relative_to(SOURCE))
        if place in FIRST_STEPS:
            continue
        functions = [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)]
        for node in (node for function in functions for node in ast.walk(function)):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            hidden |= {(place, name) for name in names if not name.startswith(FOR_LATER)}
    assert hidden == set()


# Agents

KNOWS_AGENTS = ("agents/known/", "transcripts/readers/")
STILL_NAMES_AGENTS = {
    "base/agent_folders.py",  # where conversations are, for packages below the agents
    "transcripts/locate.py",  # where the readers' files are
    "transcripts/replay/operations.py",  # what the result of each agent's tools contains
}


def test_agents_are_named_in_their_own_modules_only() -> None:
    """Else adding an agent would mean finding every place that asks which agent it is."""
    found = set()
    for path in SOURCE.rglob("*.py"):
        place = str(path.relative_to(SOURCE))
        words = {node.value for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Constant)}
        if not place.startswith(KNOWS_AGENTS) and words & set(AGENTS):
            found.add(place)
    assert found == STILL_NAMES_AGENTS


# Sizes


@pytest.mark.parametrize("package", [package for package in PACKAGES if package != COMMANDS], ids=name_of)
def test_a_package_has_few_modules(package: Path) -> None:
    assert len([path for path in package.glob("*.py") if path.name != "__init__.py"]) <= MOST_MODULES


def test_no_module_is_long() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in SOURCE.rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES} == {}


def test_no_file_of_tests_is_long() -> None:
    lengths = {name_of(path): len(path.read_text().splitlines()) for path in (PROJECT / "tests").rglob("*.py")}
    assert {name: length for name, length in lengths.items() if length > MOST_LINES_OF_TESTS} == {}


# Words


@pytest.mark.parametrize("package", PACKAGES, ids=name_of)
def test_a_package_says_what_it_is_for(package: Path) -> None:
    said = ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or ""
    assert len(said.splitlines()) in DOCSTRING_LINES


def test_every_requirement_that_is_cited_is_written_down() -> None:
    known = set(REQUIREMENT.findall((PROJECT / "docs/requirements.md").read_text()))
    cited: dict[str, set[str]] = {}
    for path in [*SOURCE.rglob("*"), *(PROJECT / "tests").rglob("*.py")]:
        if path.suffix in (".py", ".js", ".css", ".html"):
            for id in REQUIREMENT.findall(path.read_text()):
                cited.setdefault(id, set()).add(name_of(path))
    assert {id: names for id, names in cited.items() if id not in known} == {}


def test_the_architecture_names_every_package() -> None:
    """One row per package, or one that shares it with those beside it."""
    rows = re.findall(r"^\| (`.*?`) \|", (PROJECT / "docs/ARCHITECTURE.md").read_text(), re.M)
    named = set()
    for row in rows:
        words = re.findall(r"`([\w/]+)`", row)
        named |= {
            word if "/" in word or not number else f"{words[0].partition('/')[0]}/{word}"
            for number, word in enumerate(words)
        }
        named |= set(words)
    missing = {str(package.relative_to(SOURCE)) for package in PACKAGES if package != SOURCE} - named
    assert missing == {"timeline", "worktree"}  # nothing of their own: their packages have rows


DOCUMENTS = ("CONTRIBUTING.md", "SECURITY.md", "docs/guarantees.md")


@pytest.mark.parametrize("name", DOCUMENTS)
def test_tests_and_modules_that_a_document_names_exist(name: str) -> None:
    said = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", (PROJECT / name).read_text(), flags=re.S))
    tests = {path.name for path in (PROJECT / "tests").rglob("test_*.py")}
    missing = {word for word in said if re.fullmatch(r"test_\w+\.py", word) and word not in tests}
    places = [word for word in said if re.fullmatch(r"(\./)?(snapstore|scripts|tests)/[\w./-]+", word)]
    assert missing | {place for place in places if not (PROJECT / place).exists()} == set()


def test_tests_that_a_module_names_exist() -> None:
    """A module that does by hand what a library does as well says why, and which test shows it."""
    tests = {path.name for path in (PROJECT / "tests").rglob("test_*.py")}
    for path in SOURCE.rglob("*.py"):
        said = set(re.findall(r"\btest_\w+\.py\b", path.read_text()))
        assert said <= tests, f"{name_of(path)} names {said - tests}"
    guards = ["git/objects/dulwich_store", "git/objects/pack", "git/objects/trees", "git/objects/notes", "git/refs"]
    guards += ["git/objects/pack_writer", "git/ref_container", "git/reflog", "git/remote/bundles", "git/diff/patch"]
    guards += ["git/branch_descriptions", "git/maintenance/repack", "git/maintenance/pack_builder"]
    for name in guards:
        said = ast.get_docstring(ast.parse((SOURCE / f"{name}.py").read_text())) or ""
        assert "dulwich" in said and "test_" in said, name
