"""A safe environment for running ordinary git on the shadow repository (test_record_hostile.py)."""

from __future__ import annotations

import os
import re

from snapstore.errors import Unsafe
from snapstore.git.config_file import read_config

# The settings that a store's own config may hold. Any other setting was planted or is a mistake, and could make git run
# a program or follow a path.
_ALLOWED = re.compile(
    r"^(core\.(repositoryformatversion|filemode|bare|logallrefupdates|bigfilethreshold|ignorecase|precomposeunicode)"
    r"|gc\..*\.reflogexpire(unreachable)?"
    r"|(fsck|gc|pack|repack|maintenance|color|log|diff|user|blame|receive|transfer|fetch|push)\.[a-z.]+"
    r"|remote\..*\.(url|fetch|push|pushurl|mirror|tagopt|prune)|branch\..*\.(remote|merge|description))$"
)
_PROGRAMS = re.compile(r"^diff\.(external|.*\.(command|textconv))$|^(gc|maintenance)\..*hook|^color\.pager$")

# Overrides that apply whatever the store's config says.
_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.quotePath=true",
    "protocol.ext.allow=never",
    "gc.auto=0",
    "user.name=snapstore",
    "user.email=snapstore@localhost",
    "maintenance.auto=false",
)


def environment(git_dir: str) -> dict[str, str]:
    """Return an environment without the caller's GIT_* variables and git config.

    Inside a git hook or a rebase, the caller's GIT_* variables would point git at the user's own repository and index.
    No system or user config is read.
    """
    kept = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    kept.update(
        GIT_DIR=git_dir,
        GIT_CONFIG_NOSYSTEM="1",
        GIT_CONFIG_GLOBAL=os.devnull,
        GIT_CONFIG_SYSTEM=os.devnull,
        GIT_ATTR_NOSYSTEM="1",
        GIT_NO_REPLACE_OBJECTS="1",
        GIT_OPTIONAL_LOCKS="0",
        GIT_TERMINAL_PROMPT="0",
        GIT_CONFIG_COUNT=str(len(_SETTINGS)),
    )
    for number, setting in enumerate(_SETTINGS):
        key, _, value = setting.partition("=")
        kept[f"GIT_CONFIG_KEY_{number}"] = key
        kept[f"GIT_CONFIG_VALUE_{number}"] = value
    return kept


def refuse_planted(git_dir: str) -> None:
    """Raise Unsafe if the store's config or object store holds something planted."""
    try:
        config = read_config(git_dir)
    except (OSError, ValueError) as error:
        raise Unsafe(f"the store's git configuration cannot be read: {error}") from None
    for section in config.sections():
        for name, _ in config.items(section):
            key = b".".join((*section, name)).decode("utf-8", "replace").lower()
            if not _ALLOWED.match(key) or _PROGRAMS.match(key):
                raise Unsafe(
                    f"the store's git configuration sets {key}, which snapstore never does",
                    f"Remove it from {git_dir}/config; it could make git run a program.",
                    key=key,
                )
    # `shallow` and `info/grafts` make git believe that history ends early: a gc would treat the rest as garbage.
    for file in ("objects/info/alternates", "objects/info/http-alternates", "commondir", "shallow", "info/grafts"):
        if os.path.lexists(f"{git_dir}/{file}"):
            raise Unsafe(f"the store has a planted {file} file", f"Remove {git_dir}/{file}.", file=file)
