"""The system's ssh, with the user's agent, keys, known hosts and configuration."""

from __future__ import annotations

from snapstore.errors import Remote
from snapstore.git.transports.usersgit import settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from snapstore.git.transports.urls import Address


def command(
    address: Address, service: str, environment: Mapping[str, str], timeout: float, *, interactive: bool
) -> list[str]:
    """The words to run. What of them comes from the address cannot be taken for an option: see urls.py."""
    chosen = environment.get("GIT_SSH_COMMAND") or settings("core", None, environment).get("core.sshcommand", [""])[-1]
    if chosen:
        from shlex import split

        try:
            words = split(chosen)
        except ValueError:
            raise Remote("the command for ssh cannot be read", "Mend GIT_SSH_COMMAND or core.sshCommand.") from None
    else:
        words = [environment.get("GIT_SSH") or "ssh"]
    if words[0].rpartition("/")[2] == "ssh":
        words += ["-o", f"ConnectTimeout={max(1, round(timeout))}", "-o", "ServerAliveInterval=15"]
        if not interactive:  # nobody could answer it
            words += ["-o", "BatchMode=yes"]
    if address.port is not None:
        words += ["-p", str(address.port)]
    words.append(f"{address.user}@{address.host}" if address.user else address.host)
    quoted = address.path.replace("'", "'\\''").replace("!", "'\\!'")
    return [*words, f"{service} '{quoted}'"]
