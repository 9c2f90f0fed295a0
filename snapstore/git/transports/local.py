"""The way to a repository: git itself for a folder on this machine, ssh, or a socket.

A folder is served by `git upload-pack` or `git receive-pack`, spawned here. Measured for one commit: that and our own
packet lines take what `git push` takes; dulwich's LocalGitClient costs 87 ms before its first byte.
"""

from __future__ import annotations

import os

from snapstore.errors import Remote
from snapstore.git.transports.stream import Process, Stream, connect

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapstore.git.transports.urls import Address

# The repository in the folder is somebody's: what its configuration would have git run is not run.
_SETTINGS = {
    "core.hooksPath": os.devnull,
    "core.alternateRefsCommand": ":",
    "core.fsmonitor": "false",
    "protocol.allow": "never",
}
_LOOSE, _PACKS = 26, 100  # in one of 256 folders; files, two or three a pack


def reach(
    address: Address, service: str, environment: Mapping[str, str], timeout: float, *, interactive: bool
) -> Stream:
    """A stream to `git-upload-pack` or `git-receive-pack` on the other side."""
    if address.scheme == "path":
        return _folder(address, service, environment, timeout)
    if address.scheme == "ssh":
        from snapstore.git.transports.ssh import command

        words = command(address, service, environment, timeout, interactive=interactive)
        return Process(words, outside_git(environment), address.shown, max(timeout, 60.0))
    stream = connect(address.host, address.port or 9418, address.shown, timeout)
    # The protocol's first packet; the host tells a daemon of many names which one was meant.
    request = f"{service} {address.path}\0host={address.place}\0".encode("utf-8", "surrogateescape")
    stream.write(b"%04x%s" % (len(request) + 4, request))
    return stream


def outside_git(environment: Mapping[str, str]) -> dict[str, str]:
    """No GIT_* of the caller: run inside a hook they would point git at another repository."""
    return {key: value for key, value in environment.items() if not key.startswith("GIT_")}


def _folder(address: Address, service: str, environment: Mapping[str, str], timeout: float) -> Stream:
    path = address.path
    if not os.path.isdir(path):
        making = "Make a repository there with `git init --bare`, or mend" if service == "git-receive-pack" else "Mend"
        raise Remote(f"{path} is not a folder", f"{making} the address.")
    settings = dict(_SETTINGS)
    if service == "git-receive-pack" and not _needs_upkeep(path):
        settings["receive.autogc"] = "false"
    kept = outside_git(environment)
    kept.update(GIT_ALLOW_PROTOCOL="none", GIT_NO_LAZY_FETCH="1", GIT_CONFIG_COUNT=str(len(settings)))
    for number, (key, value) in enumerate(settings.items()):
        kept[f"GIT_CONFIG_KEY_{number}"] = key
        kept[f"GIT_CONFIG_VALUE_{number}"] = value
    return Process(["git", service.removeprefix("git-"), path], kept, path, timeout)


def _needs_upkeep(path: str) -> bool:
    """Whether a push may start `git gc --auto` there: where it would find something to do (by git's own estimate; two
    processes less where not), and would run no program but git."""
    folder = path if os.path.isdir(f"{path}/objects") else f"{path}/.git"
    try:
        loose = os.listdir(f"{folder}/objects/17") if os.path.isdir(f"{folder}/objects/17") else []
        packs = os.listdir(f"{folder}/objects/pack")
        if len(loose) <= _LOOSE and len(packs) <= _PACKS:
            return False
        with open(f"{folder}/config", "rb") as file:
            text = file.read(1 << 20).lower()
    except OSError:
        return False
    return b"hook" not in text and b"[include" not in text
