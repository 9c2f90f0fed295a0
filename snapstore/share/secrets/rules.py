"""Define the rules for likely secrets: file names, and patterns in lines.

docs/secrets.md lists the rules, and a test compares the two.

A rule is useful only if it is rarely wrong: users who see a rule fire at every second push add `--allow` without
reading. So a token is recognized by the prefix of its issuer, a plain `password = "…"` only if the value looks
machine-made, and whatever calls itself an example is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property
from math import log2

from snapstore.share.secrets.prefilter import around_tokens, around_values, is_plain
from snapstore.share.secrets.token_prefixes import TOKEN_RULES

LONGEST = 2048  # bytes of a line that a match can span


# A pattern is compiled when one of its marks is found: compiling all of them takes as long as a small push.
class NameRule:
    """A file that is a secret by its name.

    The name contains one of the `marks`, regardless of case. For some rules the content can clear the file: a `.pem`
    with only certificates is public.
    """

    def __init__(
        self,
        name: str,
        help: str,
        marks: tuple[bytes, ...],
        pattern: str,
        clears: Callable[[bytes], bool] | None = None,
    ) -> None:
        self.name = name
        self.help = help
        self.marks = marks
        self.clears = clears
        self._pattern = pattern

    @cached_property
    def matches(self) -> Callable[[bytes], object]:
        pattern = rb"(?:.*/)?(?:" + self._pattern.encode() + rb")"
        return re.compile(pattern, re.IGNORECASE | re.DOTALL).fullmatch


class LineRule:
    """A secret in a line.

    A match begins at one of the `marks`. The marks are searched for first, because searching for a fixed string is ten
    times as fast as for a pattern, and most files contain none. The pattern's group `secret` (or the whole match) is
    the secret, and `accepts` has the last word. `files` limits the rule to some files.

    With `after`, the marks are in lower case and match any case, the pattern matches what follows a mark, and `after`
    must match what precedes the mark in its line. If `within` is given, its result contains every match.
    """

    def __init__(
        self,
        name: str,
        help: str,
        marks: tuple[bytes, ...],
        pattern: bytes,
        accepts: Callable[[bytes], bool] | None = None,
        files: Callable[[bytes], bool] | None = None,
        after: bytes = b"",
        within: Callable[[bytes], bytes] | None = around_tokens,
        needs: bytes = b"",
    ) -> None:
        self.name = name
        self.help = help
        self.marks = marks
        self.accepts = accepts or is_random
        self.files = files
        self.after = after
        self.within = within
        self.needs = needs  # a text that every match needs and that is rarer than the marks
        self._text = pattern

    @cached_property
    def _pattern(self) -> re.Pattern[bytes]:
        return re.compile(self._text)

    @cached_property
    def _before(self) -> re.Pattern[bytes]:
        return re.compile(self.after, re.DOTALL)

    def found_in(
        self, data: bytes, folded: bytes, fits: Callable[[int, int], bool] | None = None
    ) -> Iterator[tuple[int, int, bytes]]:
        """Yield the start of each secret, the end of its match, and the secret.

        `folded` is the data in lower case. `fits` decides by position whether a match counts. After a match that does
        not count, the search continues at the next mark, which may be within the match.
        """
        for mark in self.marks if self.needs in data else ():
            searched = folded if self.after else data
            at = searched.find(mark)
            while at >= 0:
                match = self._match(data, at, at + len(mark))
                end = at + len(mark)
                if match is not None:
                    secret = match["secret"] if "secret" in self._pattern.groupindex else match[0]
                    start = match.start("secret" if self.after else 0)
                    if self.accepts(secret) and (fits is None or fits(start, match.end())):
                        end = match.end()
                        yield start, end, secret
                at = searched.find(mark, end)

    def _match(self, data: bytes, at: int, end: int) -> re.Match[bytes] | None:
        if not self.after:
            return self._pattern.match(data, at)
        match = self._pattern.match(data, end)
        if match is None:
            return None
        nearest = max(0, at - LONGEST)  # in an endless line, searching back to its start would take forever
        return match if self._before.fullmatch(data, max(nearest, data.rfind(b"\n", nearest, at) + 1), at) else None


_MADE_UP = rb"(?i)example|placeholder|redacted|x{4}|your[-_.]|\*{3}|\.{3}|0{7}|1234567|abcdefgh|deadbeef"
_PLACEHOLDER = (
    rb"(?i)change.?me|dummy|fake|sample|test|todo|passwor[dt]|secret|^null$|^none$|^true$|^false$"
    rb"|[${}<>()%]|\[|^@|^env[.:]|^process\.|^os\.|^self\.|^this\."
)


def _contains(pattern: bytes, secret: bytes) -> bool:
    return re.search(pattern, secret) is not None  # `re` caches the compiled pattern


def entropy(data: bytes) -> float:
    """Return the entropy in bits per character."""
    size = len(data)
    return -sum(n / size * log2(n / size) for n in (data.count(byte) for byte in set(data))) if size else 0.0


def is_random(secret: bytes) -> bool:
    """Return whether a token looks real, not like a placeholder from a manual."""
    return entropy(secret) >= 3.0 and not _contains(_MADE_UP, secret)


def is_secret_value(value: bytes) -> bool:
    """Return whether a value assigned to a `password` is a secret.

    A secret mixes letters with digits or signs, and is not the name of a variable.
    """
    if is_plain(value) or _contains(_PLACEHOLDER, value) or _contains(_MADE_UP, value):
        return False
    return entropy(value) >= (3.0 if len(value) >= 12 else 2.7)


def is_url_password(value: bytes) -> bool:
    """Return whether the `b` of `//a:b@c` is more than a placeholder."""
    user, _, password = value.partition(b":")
    return (
        user != password
        and len(set(password)) > 3
        and not _contains(_PLACEHOLDER, password)
        and not _contains(_MADE_UP, password)
    )


def is_web_token(token: bytes) -> bool:
    """Return whether the first part of a likely JSON web token names its algorithm."""
    from base64 import urlsafe_b64decode

    head, _, rest = token.partition(b".")
    try:
        said = urlsafe_b64decode(head + b"=" * (-len(head) % 4))
    except ValueError:
        return False
    # The token in every introduction to JSON web tokens.
    return b'"alg"' in said and not rest.endswith(b"SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c")


def _always(secret: bytes) -> bool:
    return True


def _is_registry_file(path: bytes) -> bool:
    ends = (b"/.npmrc", b"/.yarnrc", b"/.yarnrc.yml", b"/.pypirc", b"/.docker/config.json")
    return (b"/" + path.lower()).endswith(ends)


def _is_settings_file(path: bytes) -> bool:
    path = b"/" + path.lower()
    ends = (b".ini", b".cfg", b".conf", b".properties", b".toml", b".yml", b".yaml", b".tfvars", b".env")
    return path.endswith(ends) or b"/.env" in path


def _is_public(data: bytes) -> bool:
    return b"-----BEGIN " in data and b"PRIVATE KEY" not in data


NAMES = (
    NameRule(
        "env-file",
        "`.env`, `.env.*`, `*.env`, `.envrc`; not `.env.example`, `.sample`, `.template`, `.dist`",
        (b".env",),
        r"\.env|\.env\.(?!(?:.*\.)?(?:example|sample|template|dist|defaults?)$).*|(?!example|sample|template).*\.env|\.envrc",
    ),
    NameRule(
        "ssh-key",
        "`id_rsa`, `id_dsa`, `id_ecdsa`, `id_ed25519`, `*.ppk`",
        (b"id_", b".ppk"),
        r"id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|.*\.ppk",
    ),
    NameRule(
        "key-file",
        "`*.pem` (unless all of it is public), `master.key`",
        (b".pem", b"master.key"),
        r".*\.pem|master\.key",
        _is_public,
    ),
    NameRule(
        "key-store",
        "`*.p12`, `*.pfx`, `*.jks`, `*.keystore`, `*.kdbx`, `*.kdb`, `wallet.dat`",
        (b".p12", b".pfx", b".jks", b".keystore", b".kdb", b"wallet.dat"),
        r".*\.(?:p12|pfx|jks|keystore|kdbx?)|wallet\.dat",
    ),
    NameRule(
        "credentials-file",
        "`credentials`, `credentials.json`, `.netrc`, `.git-credentials`, `.pgpass`, `.htpasswd`, `.vault-token`, "
        "`client_secret*.json`, `service-account*.json`, `secrets.yml`, `secrets.json`, `secrets.toml`, `.dockercfg`, "
        "`.kube/config`, `kubeconfig`, `*.tfstate`, `*.ovpn`",
        (
            *(b"credentials", b"netrc", b".pgpass", b".htpasswd", b".vault", b"client_secret", b"account", b"secrets."),
            *(b".dockercfg", b"kube", b".tfstate", b".ovpn"),
        ),
        r"credentials(?:\.json)?|[._]netrc|\.git-credentials|\.pgpass|\.htpasswd|\.vault[-_](?:token|pass)"
        r"|client_secret.*\.json|service[-_]?account.*\.json|secrets\.(?:ya?ml|json|toml)|\.dockercfg"
        r"|\.kube/config|kubeconfig|.*\.tfstate(?:\.backup)?|.*\.ovpn",
    ),
)  # fmt: skip

NAME_MARKS = tuple(mark for rule in NAMES for mark in rule.marks)

_B = rb"(?<![A-Za-z0-9])"  # the start of a token, also after `key-` or `KEY_`
# Parts of names for secrets; `_REST` matches what must surround each. This needs fewer searches than whole names.
_PARTS = (b"pass", b"pwd", b"secret", b"key", b"token", b"credential")
_REST = (
    rb"(?i:(?<=pass)(?:word|wd|phrase)|(?<=pwd)|(?<=secret)|(?<=token)|(?<=credential)|(?<=api_key)|(?<=api-key)"
    rb"|(?<=apikey)|(?<=access_key)|(?<=accesskey)|(?<=private_key))"
)

LINES = (
    LineRule(
        "private-key",
        "a private key's block (PEM, OpenSSH, PGP), also inside JSON or a string",
        (b"-----BEGIN ",),
        rb"-----BEGIN (?:[A-Z0-9]{2,10} ){0,3}PRIVATE KEY(?: BLOCK)?-----"
        rb"(?:(?:[\s\"'+,;>|#*]|\\+[rn\"])|[A-Z][A-Za-z-]{2,20}: [^\r\n\\]{0,100}+(?=[\r\n\\])){0,24}"
        rb"(?P<secret>[A-Za-z0-9+/=]{24,76})",
        within=None,
        needs=b"PRIVATE KEY",
    ),
    LineRule(
        "aws-access-key", "`AKIA…`, `ASIA…`", (b"AKIA", b"ASIA"), _B + rb"A[KS]IA[A-Z2-7]{16}(?![A-Za-z0-9])"
    ),
    LineRule(
        "aws-secret-key",
        "40 characters after a word such as `aws_secret_access_key`",
        (b"aws", b"secretaccesskey"),
        rb"(?i:(?<=aws).{0,20}?(?:secret|key)|(?<=secretaccesskey))[^\n]{0,20}?[\"'=:\s](?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        lambda secret: entropy(secret) >= 4.0 and not _contains(_MADE_UP, secret),
        after=rb".*",
    ),
    LineRule(
        "github-token",
        "`ghp_…`, `gho_…`, `ghu_…`, `ghs_…`, `ghr_…`, `github_pat_…`",
        (b"ghp_", b"gho_", b"ghu_", b"ghs_", b"ghr_", b"github_pat_"),
        _B + rb"(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{60,255})",
    ),
    LineRule(
        "gitlab-token",
        "`glpat-…` and its like",
        (b"gl",),
        _B + rb"gl(?:pat|dt|rt|ptt|cbt|soat|oas)-[A-Za-z0-9_-]{20,255}",
    ),
    LineRule(
        "slack-token",
        "`xoxb-…` and its like, `xapp-…`, addresses of web hooks",
        (b"xox", b"xapp-", b"hooks.slack.com"),
        _B + rb"(?:xox[abeoprs]-[A-Za-z0-9-]{20,255}|xapp-[0-9]-[A-Za-z0-9-]{20,255})"
        rb"|hooks\.slack\.com/services/T[A-Za-z0-9]{6,}/B[A-Za-z0-9]{6,}/[A-Za-z0-9]{20,64}",
    ),
    LineRule(
        "stripe-key",
        "`sk_live_…`, `rk_live_…`, `whsec_…`",
        (b"sk_live_", b"rk_live_", b"whsec_"),
        _B + rb"(?:[sr]k_live_[A-Za-z0-9]{16,255}|whsec_[A-Za-z0-9]{32,64})",
    ),
    LineRule(
        "google-key",
        "`AIza…`, `ya29.…`, `GOCSPX-…`",
        (b"AIza", b"ya29.", b"GOCSPX-"),
        _B + rb"(?:AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])|ya29\.[A-Za-z0-9_-]{30,1024}|GOCSPX-[A-Za-z0-9_-]{28})",
    ),
    LineRule("anthropic-key", "`sk-ant-…`", (b"sk-ant-",), _B + rb"sk-ant-[a-z]{3,6}[0-9]{2}-[A-Za-z0-9_-]{20,255}"),
    LineRule(
        "openai-key",
        "`sk-…`, `sk-proj-…`",
        (b"sk-",),
        _B + rb"sk-(?:(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,255}|[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}"
        rb"|[A-Za-z0-9]{48}(?![A-Za-z0-9_-]))",
    ),
    LineRule("huggingface-token", "`hf_…`", (b"hf_",), _B + rb"hf_[A-Za-z]{34}(?![A-Za-z0-9_])"),
    LineRule("npm-token", "`npm_…`", (b"npm_",), _B + rb"npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
    LineRule("pypi-token", "`pypi-…`", (b"pypi-AgE",), _B + rb"pypi-AgE[A-Za-z0-9_-]{50,1024}"),
    *(LineRule(rule.name, rule.help, rule.marks, _B + rule.pattern) for rule in TOKEN_RULES),
    LineRule(
        "other-token",
        "those of SendGrid, Twilio, DigitalOcean, Shopify, Vault, Databricks, Azure Storage, age",
        (b"SG.", b"SK", b"doo_v1_", b"dop_v1_", b"dor_v1_", b"shp", b"hvs.", b"dapi", b"AccountKey=", b"AGE-SECRET-"),
        _B + rb"(?:SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43}|SK[0-9a-f]{32}(?![0-9a-zA-Z])"
        rb"|do[opr]_v1_[a-f0-9]{64}|shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}|hvs\.[A-Za-z0-9_-]{24,255}|dapi[0-9a-f]{32}"
        rb"|AccountKey=[A-Za-z0-9+/]{86}==|AGE-SECRET-KEY-1[0-9A-Z]{58})",
    ),
    LineRule(
        "other-token",
        "those of Telegram bots",
        (b":aa",),
        rb"(?<=AA)(?P<secret>[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])",
        after=rb".*(?<![A-Za-z0-9_-])[0-9]{8,10}",
    ),
    LineRule(
        "web-token",
        "a JSON web token, `eyJ….eyJ….…`",
        (b"eyJ",),
        _B + rb"eyJ[A-Za-z0-9_-]{10,512}\.eyJ[A-Za-z0-9_-]{4,1024}\.[A-Za-z0-9_-]{20,512}",
        is_web_token,
    ),
    LineRule(
        "url-password",
        "`scheme://user:password@host`",
        (b"://",),
        rb"://(?P<secret>[^\s/:@\"'<>`\\]{0,64}:[^\s/@:,\"'<>`\\]{4,128})@[A-Za-z0-9\[]",
        is_url_password,
        within=None,
    ),
    LineRule(
        "registry-login",
        "`_authToken`, `_auth`, `_password` in `.npmrc`; `password` in `.pypirc`; `auth` in `.docker/config.json`",
        (b"_auth", b"_password", b"password", b'"auth"'),
        rb"(?:_authToken|_auth|_password|(?<![A-Za-z_])password|\"auth\")\s{0,4}[=:]\s{0,4}[\"']?(?!\$)(?P<secret>[^\s\"']{8,512})",
        _always,
        _is_registry_file,
        within=None,
    ),
    LineRule(
        "assigned-secret",
        "a value in quotes given to a name with `password`, `passwd`, `pwd`, `passphrase`, `secret`, `token`, "
        "`api_key`, `access_key`, `private_key` or `credential` in it, when it mixes letters with "
        "digits or signs at random",
        _PARTS,
        _REST + rb"[A-Za-z0-9_-]{0,40}\\{0,3}[\"']?(?:\s?\])?\s{0,8}(?:=>|:=|==?|:)\s{0,8}"
        rb"\\{0,3}(?P<quote>[\"'`])(?P<secret>[^\"'`\s\\]{8,256})\\{0,3}(?P=quote)",  # also within a string
        is_secret_value,
        after=rb".*",
        within=around_values,
    ),
    LineRule(
        "assigned-secret",
        "the same without quotes in `.ini`, `.cfg`, `.conf`, `.properties`, `.toml`, `.yml`, `.yaml`, `.tfvars` and "
        "env files",
        _PARTS,
        _REST + rb"[A-Za-z0-9_-]{0,40}[ \t]{0,8}[=:][ \t]{0,8}(?P<secret>[^\"'`\s\\#]{8,256})(?=[ \t]*(?:\r|\n|$))",
        is_secret_value,
        _is_settings_file,
        after=rb"[ \t]*(?:export )?[A-Za-z0-9_.-]*",
        within=None,
    ),
)  # fmt: skip
ANYWHERE = tuple(rule for rule in LINES if rule.files is None)
LIMITED = tuple(rule for rule in LINES if rule.files is not None)
