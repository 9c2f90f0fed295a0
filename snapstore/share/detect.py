"""detect-secrets, where it is installed, as more rules for lines.

Only those of its detectors are asked that know one maker's tokens and that ours do not know better. Those for entropy
and keywords, for any address with a colon and for the mere mention of a private key cry at every second file. Nothing
is ever verified: that would send what was found to somebody's server.
"""

from __future__ import annotations

import re

from snapstore.share.rules import LONGEST, is_random

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# Module, class, and texts without which it need not be tried.
ASKED = (
    ("artifactory", "ArtifactoryDetector", ("AKC", "AP")),
    ("aws", "AWSKeyDetector", ("A3T", "ABIA", "ACCA", "AKIA", "ASIA", "aws", "AWS")),
    ("azure_storage_key", "AzureStorageKeyDetector", ("AccountKey=",)),
    ("cloudant", "CloudantDetector", ("cloudant", "CLOUDANT")),
    ("discord", "DiscordBotTokenDetector", ("iscord", "DISCORD", "bot", "BOT", "Bot")),
    ("ibm_cloud_iam", "IbmCloudIamDetector", ("ibm", "IBM", "iam", "IAM")),
    ("ibm_cos_hmac", "IbmCosHmacDetector", ("cos", "COS")),
    ("mailchimp", "MailchimpDetector", ("-us",)),
    ("softlayer", "SoftlayerDetector", ("softlayer", "SOFTLAYER")),
    ("square_oauth", "SquareOAuthDetector", ("sq0csp-",)),
    ("telegram_token", "TelegramBotTokenDetector", ("elegram", "TELEGRAM", "bot", "BOT", "Bot")),
    ("twilio", "TwilioKeyDetector", ("AC", "SK")),
)
MOST = 4 << 20  # bytes of one push that it looks at: it takes ten times as long as our own rules

# Importing it costs ten interpreter starts. Whatever it knows has a word of this kind in it.
_WORTH_IT = re.compile(rb"(?<![A-Za-z0-9+/_-])(?=[A-Za-z+/_-]{0,40}[0-9])[A-Za-z0-9+/_-]{11}").search
_DIGIT = re.compile(rb"[0-9]").search


class Detector:
    """Its detectors, loaded when the first text needs them."""

    def __init__(self) -> None:
        self._plugins: list[tuple[Any, tuple[str, ...]]] | None = None
        self._left = MOST

    def found_in(self, data: bytes) -> Iterator[tuple[str, int, bytes]]:
        """Rule, place and secret."""
        if self._left <= 0 or self._plugins == [] or not _WORTH_IT(data):
            return
        data = data[: self._left]
        self._left -= len(data)
        if self._plugins is None:
            self._plugins = _load()
        text = data.decode("latin-1")
        for plugin, marks in self._plugins:
            if not any(mark in text for mark in marks):
                continue
            rule = "detect-secrets: " + str(plugin.secret_type)
            for at in sorted({match.start() for pattern in plugin.denylist for match in pattern.finditer(text)}):
                line = _line(text, at)
                for secret in plugin.analyze_string(line):
                    found = secret.encode("latin-1")
                    if _DIGIT(found) and is_random(found):
                        yield rule, max(at, text.find(secret, at)), found


def _line(text: str, at: int) -> str:
    """The line around a place; of a very long one, only what is near."""
    at += text[at : at + 1] == "\n"
    start = max(text.rfind("\n", 0, at) + 1, at - LONGEST)
    end = text.find("\n", at)
    return text[start : min(end if end >= 0 else len(text), at + LONGEST)]


def _load() -> list[tuple[Any, tuple[str, ...]]]:
    from importlib import import_module

    plugins: list[tuple[Any, tuple[str, ...]]] = []
    for module, name, marks in ASKED:
        try:
            plugins.append((getattr(import_module(f"detect_secrets.plugins.{module}"), name)(), marks))
        except (ImportError, AttributeError):  # not installed, or a version that does not have it
            continue
    return plugins
