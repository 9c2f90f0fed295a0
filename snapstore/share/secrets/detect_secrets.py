"""Search with line rules of detect-secrets, if it is installed.

Only detectors for the tokens of one issuer are used, and only where our own rules are not better. The detectors for
entropy, for keywords, for any URL with a colon and for the mention of a private key fire at every second file. Findings
are never verified, because that would send them to a server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from snapstore.share.secrets.rules import LONGEST, is_random

_RUN = rb"[A-Za-z0-9_-]{24}"
# Module, class, texts of which one must occur, and a rough pattern for what the detector finds. Importing all detectors
# takes as long as starting the interpreter ten times, so a detector is imported only if its pattern matches.
ASKED = (
    ("artifactory", "ArtifactoryDetector", (b"AKC", b"AP"), rb"AKC[a-zA-Z0-9]{10}|AP[0-9A-F][a-zA-Z0-9]{8}"),
    ("aws", "AWSKeyDetector", (b"A3T", b"ABIA", b"ACCA"), rb"(?:A3T[A-Z0-9]|ABIA|ACCA)[0-9A-Z]{16}"),
    ("cloudant", "CloudantDetector", (b"cloudant", b"CLOUDANT"), _RUN),
    (
        "discord",
        "DiscordBotTokenDetector",
        (b"iscord", b"DISCORD", b"bot", b"BOT", b"Bot"),
        rb"\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27}",
    ),
    ("ibm_cloud_iam", "IbmCloudIamDetector", (b"ibm", b"IBM", b"iam", b"IAM"), _RUN + rb"[A-Za-z0-9_-]{20}"),
    ("ibm_cos_hmac", "IbmCosHmacDetector", (b"cos", b"COS"), rb"[a-f0-9]{48}"),
    ("mailchimp", "MailchimpDetector", (b"-us",), rb"[0-9a-z]{32}-us[0-9]"),
    ("softlayer", "SoftlayerDetector", (b"softlayer", b"SOFTLAYER"), _RUN),
    ("square_oauth", "SquareOAuthDetector", (b"sq0csp-",), rb"sq0csp-"),
    (
        "telegram_token",
        "TelegramBotTokenDetector",
        (b"elegram", b"TELEGRAM", b"bot", b"BOT", b"Bot"),
        rb"[0-9]{8}:" + _RUN,
    ),
    ("twilio", "TwilioKeyDetector", (b"AC", b"SK"), rb"(?:AC|SK)[a-z0-9]{32}"),
)
MOST = 2 << 20  # bytes per push that detect-secrets searches: it takes ten times as long as our own rules


class Detector:
    """The detectors, each loaded when the first text needs it."""

    def __init__(self) -> None:
        self._plugins: dict[str, Any] = {}
        self._left = MOST

    def found_in(self, data: bytes, words: bytes | None = None) -> Iterator[tuple[str, int, bytes]]:
        """Yield rule, position and secret.

        `words` are the data's long words with what precedes them, if the caller has them. All secrets are among them.
        """
        words = data if words is None else words
        text = ""
        for module, name, marks, hint in ASKED:
            if self._left <= 0 or not any(mark in words for mark in marks) or not re.search(hint, words):
                continue
            plugin = self._plugin(module, name)
            if plugin is None:
                continue
            self._left -= len(words)
            text = text or words.decode("latin-1")
            for secret in _found(plugin, text):
                for at in _places(plugin, data, secret):
                    yield f"detect-secrets: {plugin.secret_type}", at, secret

    def _plugin(self, module: str, name: str) -> Any:
        """Return a detector; None if it is not installed or missing in this version."""
        if name not in self._plugins:
            try:
                self._plugins[name] = getattr(import_module(f"detect_secrets.plugins.{module}"), name)()
            except (ImportError, AttributeError):
                self._plugins[name] = None
        return self._plugins[name]


def _found(plugin: Any, text: str) -> list[bytes]:
    """Return the secrets in a text, each once."""
    found: dict[str, None] = {}
    for at in sorted({match.start() for pattern in plugin.denylist for match in pattern.finditer(text)}):
        found.update(dict.fromkeys(plugin.analyze_string(_line(text, at))))
    secrets = [secret.encode("latin-1") for secret in found]
    return [secret for secret in secrets if re.search(rb"[0-9]", secret) and is_random(secret)]


def _places(plugin: Any, data: bytes, secret: bytes) -> Iterator[int]:
    """Yield the positions where the detector accepts the secret in its whole line."""
    at = data.find(secret)
    while at >= 0:
        text = data[max(0, at - LONGEST) : at + LONGEST].decode("latin-1")
        if secret.decode("latin-1") in plugin.analyze_string(_line(text, min(at, LONGEST))):
            yield at
        at = data.find(secret, at + len(secret))


def _line(text: str, at: int) -> str:
    """Return the line around a position; of a very long line, only the part nearby."""
    at += text[at : at + 1] == "\n"
    start = max(text.rfind("\n", 0, at) + 1, at - LONGEST)
    end = text.find("\n", at)
    return text[start : min(end if end >= 0 else len(text), at + LONGEST)]
