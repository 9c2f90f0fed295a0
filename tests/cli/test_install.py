"""Installing: hooks that no environment disturbs, the declared dependencies, and a store home like platformdirs'."""

from __future__ import annotations

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from commands import PROGRAM, snap, snap_json
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from test_connect import commands, put, value_of

from snapstore.base import own_command as program
from snapstore.store import locations as places

PROJECT = Path(__file__).parents[2]
MEMBERS = tomllib.loads((PROJECT / "pyproject.toml").read_text())
SETTINGS = ".claude/settings.json"
ID = "3f2a9c1d-5b7e-4c11-9a55-0d6f1e2b3c4d"


def connected(home: Path) -> str:
    """The command that the user's hooks of Claude Code run."""
    (command,) = set(commands(value_of(home / SETTINGS)))
    return command


def call(command: str, root: Path, event: str, environment: dict[str, str] | None = None, **more: Any) -> None:
    """Run a hook as the agent does. It must be silent, except for what a program in its way would say."""
    payload = {"session_id": ID, "cwd": str(root), "hook_event_name": event, "prompt_id": "p1", **more}
    done = subprocess.run(
        ["/bin/sh", "-c", command],
        input=json.dumps(payload).encode(),
        cwd=root,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def turn(command: str, root: Path, names: list[str], environment: dict[str, str] | None = None) -> None:
    call(command, root, "UserPromptSubmit", environment, prompt="Write")
    for name in names:
        path = root / name
        tool = {"tool_name": "Write", "tool_input": {"file_path": str(path), "content": "new"}}
        call(command, root, "PreToolUse", environment, **tool)
        path.write_text("new")
        call(command, root, "PostToolUse", environment, **tool)
    call(command, root, "Stop", environment)


def last_files(root: Path) -> list[str]:
    """The files of the last turn, asked from outside: a module of the project would be imported instead of ours."""
    nodes = snap_json(root.parent, "-C", str(root), "log", "--json")["nodes"]
    return [file["path"] for file in nodes[-1]["files"]]


# Hooks in an unfriendly environment


@pytest.fixture
def hostile(tmp_path: Path) -> dict[str, str]:
    """Variables that break, slow down or stop an interpreter that listens to them."""
    modules = tmp_path / "modules"
    for name in ("json", "sitecustomize", "click", "snapstore", "subprocess"):
        put(modules / f"{name}.py", f"raise SystemExit('{name} of the project')\n")
    return {
        "PYTHONPATH": str(modules),
        "PYTHONHOME": str(tmp_path / "nowhere"),
        "PYTHONSTARTUP": str(modules / "json.py"),
        "PYTHONINSPECT": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONWARNINGS": "error",
        "PYTHONVERBOSE": "1",
        "PYTHONOPTIMIZE": "2",
        "PYTHONPLATLIBDIR": "nowhere",
    }


def test_no_variable_and_no_module_of_the_project_reaches_a_users_hook(
    root: Path, nobodys_home: Path, hostile: dict[str, str]
) -> None:
    snap(root, "init", "-q")
    snap(root, "connect", "claude")
    shutil.copytree(hostile["PYTHONPATH"], root, dirs_exist_ok=True)
    turn(connected(nobodys_home), root, ["hello"], hostile)
    assert last_files(root) == ["hello"]
    assert snap_json(root.parent, "-C", str(root), "status", "--json")["hook_errors"] == []


def test_a_projects_hook_ignores_the_modules_of_the_project(
    root: Path, tmp_path: Path, hostile: dict[str, str]
) -> None:
    """Its line is shared, so it cannot name an interpreter: the two variables that break it are emptied."""
    snap(root, "init", "-q")
    snap(root, "connect", "claude", "--project")
    (command,) = set(commands(value_of(root / SETTINGS)))
    script = put(
        tmp_path / "bin" / "snapstore",
        f"#!{sys.executable}\nimport sys\nfrom snapstore.__main__ import main\nsys.exit(main())\n",
    )
    script.chmod(0o755)
    reaching = {name: hostile[name] for name in ("PYTHONPATH", "PYTHONHOME")}
    turn(command, root, ["hello"], {**reaching, "PATH": f"{script.parent}:{os.environ['PATH']}"})
    assert last_files(root) == ["hello"]


def test_a_hook_in_a_locale_that_is_not_utf8_names_the_same_files(
    root: Path, nobodys_home: Path, tmp_path: Path
) -> None:
    """G-36. `-I` ignores PYTHONUTF8, so the program must look after its encoding itself."""
    snap(root, "connect", "claude")
    names = ["café", "日本"]
    locales = [{}, {"LC_ALL": "POSIX"}, {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}]
    if shutil.which("localedef") and os.path.isdir("/usr/share/i18n/charmaps"):
        made = ["localedef", "--quiet", "-c", "-i", "POSIX", "-f", "ISO-8859-1", str(tmp_path / "xx_XX")]
        subprocess.run(made, check=False, capture_output=True)
        locales.append({"LC_ALL": "xx_XX", "LOCPATH": str(tmp_path)})
    for locale in locales:
        for name in names:
            (root / name).write_text("old")
        turn(connected(nobodys_home), root, names, locale)
        assert sorted(last_files(root)) == names
        snap(root, "undo", "-y")
        assert [(root / name).read_text() for name in names] == ["old"] * 2


def base_python() -> str:
    """An interpreter that is no virtual environment's: those have no user site-packages."""
    return os.path.realpath(getattr(sys, "_base_executable", sys.executable))


def test_an_installation_of_the_user_alone_is_found(root: Path, nobodys_home: Path) -> None:
    """`pip install --user`: `-I` leaves the user's site-packages out, so the hooks are started with `-E -P`."""
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    site = nobodys_home / ".local/lib" / version / "site-packages"
    folders = [str(PROJECT), *(folder for folder in sys.path if folder.endswith("site-packages"))]
    put(site / "snapstore.pth", "\n".join(folders) + "\n")
    python = base_python()
    probe = [python, "-E", "-P", "-c", "import snapstore, click, xxhash, dulwich"]
    if subprocess.run(probe, check=False, capture_output=True, cwd="/").returncode != 0:
        pytest.skip("this interpreter has no user site-packages")
    if subprocess.run([python, "-I", "-c", "import snapstore"], check=False, capture_output=True).returncode == 0:
        pytest.skip("snapstore is installed for everybody")
    subprocess.run([python, "-m", "snapstore", "connect", "claude"], cwd=root, check=True, capture_output=True)
    command = connected(nobodys_home)
    assert command.startswith(f"{python} -E -P -c ")
    put(root / "json.py", "raise SystemExit('mine')\n")
    turn(command, root, ["hello"], {"PYTHONPATH": str(root)})
    assert last_files(root) == ["hello"]


def test_background_work_is_started_as_strictly_as_the_program_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hooks are isolated, and so is what they start; an embedding program finds us by its own path."""
    code = "from snapstore.base.own_command import own_command; print(own_command()[1:-2])"
    for flags, said in (
        (["-I"], ["-I"]),
        (["-E", "-P"], ["-E", "-P"]),
        (["-P"], ["-P"]),
    ):
        done = subprocess.run([sys.executable, *flags, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == str(said)
    monkeypatch.setattr(program, "PACKAGE", f"{sys.prefix}/lib/python3/site-packages/snapstore")
    assert program.own_command() == [sys.executable, "-I", *program.ENTRY]
    monkeypatch.setenv("PYTHONPATH", f"{sys.prefix}/lib/python3/site-packages")
    assert program.own_command() == [sys.executable, "-P", *program.ENTRY]


def test_connect_compiles_the_package_once_and_never_fails_over_it(
    root: Path, tmp_path: Path, nobodys_home: Path
) -> None:
    copy = tmp_path / "copy" / "snapstore"
    shutil.copytree(PROJECT / "snapstore", copy, ignore=shutil.ignore_patterns("__pycache__"))
    put(copy / "records" / "broken.py", "def :\n")
    environment = {**os.environ, "PYTHONPATH": str(copy.parent), "PYTHONDONTWRITEBYTECODE": "1"}

    def run(*words: str) -> str:
        done = subprocess.run([*PROGRAM, *words], cwd=root, env=environment, capture_output=True, text=True, check=True)
        assert done.stderr == ""
        return done.stdout

    run("connect", "claude", "--dry-run")
    assert not list(copy.rglob("*.pyc"))
    assert json.loads(run("connect", "claude", "--json"))["changed"]
    compiled = {path.name.partition(".")[0] for path in copy.rglob("*.pyc")}
    assert {"undo", "hook", "deflate", "__main__"} <= compiled and "broken" not in compiled


def test_isal_is_an_accelerator_only(root: Path) -> None:
    code = (
        "import sys; sys.modules['isal'] = None\n"
        "from snapstore.__main__ import main\n"
        "from snapstore.git.objects import deflate\n"
        "status = main()\n"
        "import zlib; assert deflate.load() is zlib\n"
        "sys.exit(status)"
    )
    (root / "big").write_bytes(os.urandom(100_000) * 3)

    def run(*words: str) -> None:
        subprocess.run([sys.executable, "-c", code, *words], cwd=root, check=True, capture_output=True)

    run("init", "-q")
    data = os.urandom(200_000)
    run("run", "-q", "--", sys.executable, "-c", "open('big', 'wb').write(b'x' * 70_000)")
    (root / "other").write_bytes(data)
    run("undo", "-y")
    assert (root / "big").stat().st_size == 300_000 and (root / "other").read_bytes() == data


# What pyproject.toml says


def requirements() -> list[Requirement]:
    project = MEMBERS["project"]
    extras = [line for name, lines in project["optional-dependencies"].items() if name != "all" for line in lines]
    return [Requirement(line) for line in (*project["dependencies"], *extras)]


def test_every_dependency_has_a_lower_and_an_upper_bound() -> None:
    for requirement in requirements():
        operators = {part.operator for part in requirement.specifier}
        assert operators == {">=", "<"}, requirement
    click = next(requirement for requirement in requirements() if requirement.name == "click")
    assert "8.3.9" not in click.specifier and "8.4" in click.specifier


def test_all_means_every_extra() -> None:
    extras = MEMBERS["project"]["optional-dependencies"]
    (everything,) = extras["all"]
    assert Requirement(everything).extras == set(extras) - {"all"}


def test_the_classifiers_name_each_python_that_is_allowed() -> None:
    named = re.findall(r"Python :: 3\.(\d+)", "\n".join(MEMBERS["project"]["classifiers"]))
    assert [int(minor) for minor in named] == list(range(11, 11 + len(named)))
    assert MEMBERS["project"]["requires-python"] == f">=3.{named[0]}"


def test_every_imported_library_is_declared() -> None:
    declared = {requirement.name.replace("-", "_") for requirement in requirements()}
    # By uvicorn, rich, fastapi and pydantic, which cannot do without.
    brought = {"h11", "pygments", "starlette", "pydantic_core"}
    imported: set[str] = set()
    for path in (PROJECT / "snapstore").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                imported |= {name.name.partition(".")[0] for name in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                imported.add((node.module or "").partition(".")[0])
    assert imported - declared - brought - set(sys.stdlib_module_names) - {"snapstore"} == set()


def test_the_lock_pins_whatever_the_tests_need() -> None:
    lines = (PROJECT / "requirements-dev.lock").read_text().splitlines()
    assert all(re.match(r"[a-z0-9._-]+==[^ ]+( ; .+)?$", line) for line in lines), "exact versions, and no addresses"
    pinned = {canonicalize_name(line.partition("==")[0]): Requirement(line) for line in lines}
    tools = [Requirement(line) for line in MEMBERS["dependency-groups"]["dev"]]
    for requirement in (*requirements(), *tools):
        (pin,) = pinned[canonicalize_name(requirement.name)].specifier
        assert requirement.specifier.contains(pin.version), requirement


# Where stores live


@pytest.mark.parametrize("data", ["", "/else/where", "relative"])
@pytest.mark.skipif(sys.platform != "linux", reason="on macOS platformdirs follows XDG_DATA_HOME, and stores do not")
def test_stores_live_where_platformdirs_says(data: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import platformdirs

    monkeypatch.delenv("SNAPSTORE_HOME")
    monkeypatch.setenv("XDG_DATA_HOME", data)
    assert places.home_folder() == os.path.realpath(platformdirs.user_data_dir("snapstore", appauthor=False))


# The built wheel, installed as people do


def run(*words: str | Path, cwd: Path, environment: dict[str, str] | None = None) -> str:
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, f"{words}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def pip(venv: Path, *words: str | Path, cwd: Path) -> None:
    run(venv / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check", *words, cwd=cwd)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    ignored = shutil.ignore_patterns(".venv", ".git", "__pycache__", ".*_cache", "dist")
    shutil.copytree(PROJECT, source, ignore=ignored)
    pip(Path(sys.prefix), "wheel", "--no-deps", "--wheel-dir", folder, source, cwd=folder)
    (built,) = folder.glob("snapstore-*.whl")
    return built


def install(tool: str, wheel: Path, folder: Path) -> Path:
    """Install the wheel with a tool, and return the program."""
    venv = folder / "venv"
    run(base_python(), "-m", "venv", venv, cwd=folder)
    if tool == "pip":
        pip(venv, "install", wheel, cwd=folder)
        return venv / "bin/snapstore"
    pip(venv, "install", tool, cwd=folder)
    bin = folder / "bin"
    if tool == "uv":
        places = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(bin), "UV_CACHE_DIR": str(folder / "c")}
        run(venv / "bin/uv", "tool", "install", "--python", base_python(), wheel, cwd=folder, environment=places)
    else:
        places = {"PIPX_HOME": str(folder / "pipx"), "PIPX_BIN_DIR": str(bin), "PIPX_MAN_DIR": str(folder / "man")}
        run(venv / "bin/pipx", "install", "--python", base_python(), wheel, cwd=folder, environment=places)
    return bin / "snapstore"


@pytest.mark.deep
@pytest.mark.parametrize("tool", ["pip", "uv", "pipx"])
def test_the_wheel_works_however_it_is_installed(
    tool: str, wheel: Path, root: Path, tmp_path: Path, nobodys_home: Path
) -> None:
    program = install(tool, wheel, tmp_path)
    assert run(program, "--version", cwd=root).startswith("snapstore ")
    (root / "hello").write_text("old")
    run(program, "init", "-q", cwd=root)
    run(program, "connect", "claude", cwd=root)
    command = connected(nobodys_home)
    assert " -I -c " in command and str(PROJECT) not in command
    put(root / "json.py", "raise SystemExit('mine')\n")
    turn(command, root, ["hello"], {"PYTHONPATH": str(root)})
    run(program, "undo", "-y", cwd=root)
    assert (root / "hello").read_text() == "old"
