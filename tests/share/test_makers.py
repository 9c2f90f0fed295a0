"""Tokens of many makers are found wherever they stand, and words that only resemble them are not.

No token stands in this file: each is put together when the test runs, so that the file itself can be pushed.
"""

from __future__ import annotations

import random
import string

import pytest

from snapstore.share.secrets import prefilter, rules
from snapstore.share.secrets.token_prefixes import TOKEN_RULES

DICE = random.Random(11)
HEX, LOWER, UPPER, WORD = "0123456789abcdef", string.ascii_lowercase + string.digits, string.ascii_uppercase, ""
UPPER += string.digits
WORD = string.ascii_letters + string.digits
URL = WORD + "_-"


def made(size: int, letters: str = WORD) -> str:
    """So many characters as a machine makes them: never a sign at the end, always a digit."""
    found = [DICE.choice(letters) for _ in range(size)]
    found[0], found[-1] = "7", "9"
    return "".join(found)


def uuid() -> str:
    return "-".join(made(size, HEX) for size in (8, 4, 4, 4, 12))


# Each kind with the sizes that its maker publishes: rule, mark, what follows.
KINDS = {
    "Groq": ("model-key", "gsk" + "_", made(52)),
    "xAI": ("model-key", "xai" + "-", made(80)),
    "OpenRouter": ("model-key", "sk-or" + "-v1-", made(64, HEX)),
    "Perplexity": ("model-key", "pplx" + "-", made(48)),
    "Replicate": ("model-key", "r8" + "_", made(37)),
    "NVIDIA": ("model-key", "nvapi" + "-", made(64, URL)),
    "Cerebras": ("model-key", "csk" + "-", made(48, LOWER)),
    "Together": ("model-key", "tgp_v1" + "_", made(43, URL)),
    "DeepSeek": ("model-key", "sk" + "-", made(32, HEX)),
    "ElevenLabs": ("model-key", "sk" + "_", made(48, HEX)),
    "Jina": ("model-key", "jina" + "_", made(60)),
    "Tavily": ("model-key", "tvly" + "-", made(32)),
    "Tavily, newer": ("model-key", "tvly" + "-dev-", made(32)),
    "Firecrawl": ("model-key", "fc" + "-", made(32, HEX)),
    "Pinecone": ("model-key", "pcsk" + "_", made(5) + "_" + made(63)),
    "LangSmith": ("model-key", "lsv2_pt" + "_", made(32, HEX) + "_" + made(10, HEX)),
    "Langfuse": ("model-key", "sk-lf" + "-", uuid()),
    "E2B": ("model-key", "e2b" + "_", made(40, HEX)),
    "Linear": ("work-token", "lin_api" + "_", made(40)),
    "Linear, OAuth": ("work-token", "lin_oauth" + "_", made(64, HEX)),
    "Notion": ("work-token", "ntn" + "_", made(11, string.digits) + made(35)),
    "Figma": ("work-token", "figd" + "_", made(40, URL)),
    "Atlassian": ("work-token", "ATATT3" + "x", made(180, URL)),
    "Postman": ("work-token", "PMAK" + "-", made(24, HEX) + "-" + made(34, HEX)),
    "Contentful": ("work-token", "CFPAT" + "-", made(43, URL)),
    "HubSpot": ("work-token", "pat-na1" + "-", uuid()),
    "Typeform": ("work-token", "tfp" + "_", made(44) + "_" + made(14)),
    "Discord web hook": (
        "work-token",
        "discord.com/api/" + "webhooks/",
        made(18, string.digits) + "/" + made(68, URL),
    ),
    "1Password": ("work-token", "ops" + "_eyJ", made(250)),
    "Grafana": ("operations-token", "glsa" + "_", made(32) + "_" + made(8, HEX)),
    "Grafana Cloud": ("operations-token", "glc" + "_eyJ", made(100)),
    "Sentry": ("operations-token", "sntrys" + "_eyJ", made(120) + "_" + made(43)),
    "Sentry, of a person": ("operations-token", "sntryu" + "_", made(64, HEX)),
    "New Relic": ("operations-token", "NRAK" + "-", made(27, UPPER)),
    "Dynatrace": ("operations-token", "dt0c01" + ".", made(24, UPPER) + "." + made(64, UPPER)),
    "PostHog": ("operations-token", "phx" + "_", made(43)),
    "Sonar": ("operations-token", "squ" + "_", made(40, HEX)),
    "Sourcegraph": ("operations-token", "sgp" + "_", made(16, HEX) + "_" + made(40, HEX)),
    "CircleCI": ("operations-token", "CCIPAT" + "_", made(22) + "_" + made(40, HEX)),
    "Buildkite": ("operations-token", "bkua" + "_", made(40, HEX)),
    "Tailscale": ("operations-token", "tskey-auth" + "-", made(12) + "-" + made(32)),
    "Doppler": ("operations-token", "dp.pt" + ".", made(43)),
    "Doppler, of a service": ("operations-token", "dp.st" + ".", "prd." + made(43)),
    "Prefect": ("operations-token", "pnu" + "_", made(36)),
    "Docker Hub": ("hosting-token", "dckr_pat" + "_", made(27, URL)),
    "Docker Hub, of an organisation": ("hosting-token", "dckr_oat" + "_", made(32, URL)),
    "Supabase": ("hosting-token", "sbp" + "_", made(40, HEX)),
    "Supabase, of a project": ("hosting-token", "sb_secret" + "_", made(22) + "_" + made(8)),
    "Fly.io": ("hosting-token", "fm2" + "_", made(400)),
    "Netlify": ("hosting-token", "nfp" + "_", made(36)),
    "PlanetScale": ("hosting-token", "pscale_tkn" + "_", made(43, URL)),
    "Heroku": ("hosting-token", "HRKU" + "-AA", made(58)),
    "Neon": ("hosting-token", "napi" + "_", made(64, LOWER)),
    "Render": ("hosting-token", "rnd" + "_", made(32)),
    "Pulumi": ("hosting-token", "pul" + "-", made(40, HEX)),
    "Alibaba Cloud": ("hosting-token", "LTAI" + "5t", made(18)),
    "Square": ("shop-token", "sq0atp" + "-", made(22, URL)),
    "Square, OAuth": ("shop-token", "sq0csp" + "-", made(43, URL)),
    "Braintree": ("shop-token", "access_token$" + "production$", made(16, LOWER) + "$" + made(32, HEX)),
    "Shippo": ("shop-token", "shippo_live" + "_", made(40, HEX)),
    "Brevo": ("shop-token", "xkeysib" + "-", made(64, HEX) + "-" + made(16)),
    "Resend": ("shop-token", "re" + "_", made(8) + "_" + made(24)),
    "Mapbox": ("shop-token", "sk" + ".eyJ", made(60) + "." + made(22)),
    "RubyGems": ("package-token", "rubygems" + "_", made(48, HEX)),
    "crates.io": ("package-token", "cio", made(32)),
    "NuGet": ("package-token", "oy2", made(43, LOWER)),
}


def told(text: str) -> set[tuple[str, str]]:
    """What any rule finds in a text, by rule and secret."""
    data = text.encode()
    return {
        (rule.name, secret.decode()) for rule in rules.ANYWHERE for _, _, secret in rule.found_in(data, data.lower())
    }


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("around", ["{}", "curl -H 'Authorization: Bearer {}'", "see {}, please", "[{}]", "KEY_{}\n"])
def test_a_token_is_found_outside_any_assignment(kind: str, around: str) -> None:
    rule, mark, rest = KINDS[kind]
    assert told(around.format(mark + rest)) == {(rule, mark + rest)}


@pytest.mark.parametrize("kind", KINDS)
def test_what_only_resembles_a_token_is_none(kind: str) -> None:
    _, mark, rest = KINDS[kind]
    assert told(f"pre{mark}{rest}"[: len(mark) + 3] + " " + rest[:-8]) == set()  # the mark alone, the rest alone
    assert told(mark + rest[:12]) == set(), "cut off"
    assert told(mark + "x" * len(rest)) == set(), "a stand-in"
    assert told(f"{mark}your-{kind.lower()}-token-here-please") == set()
    if kind != "Discord web hook":  # whose mark is an address
        assert told(f"Q{mark}{rest}") == set(), "inside a word"


def test_every_mark_has_a_kind_that_is_tried() -> None:
    tried = {mark + rest for _, mark, rest in KINDS.values()}
    besides = {b"ATCTT3", b"discordapp.com/api/webhooks/", b"sqp_", b"sqa_", b"fm1r_", b"fo1_"}  # like another
    for maker in TOKEN_RULES:
        for mark in maker.marks:
            assert mark in besides or any(token.startswith(mark.decode()) for token in tried), mark


def test_the_quick_look_passes_no_token_over() -> None:
    """Long texts are narrowed down to long words first: each token is among them, with its mark."""
    for kind, (rule, mark, rest) in KINDS.items():
        for before in ("", "x = ", "a" * 30 + " ", "(" * 70):
            part = prefilter.around_tokens(f"{before}{mark}{rest} and so on".encode())
            names = {found.name for found in rules.ANYWHERE if next(found.found_in(part, part.lower()), None)}
            assert rule in names, kind
