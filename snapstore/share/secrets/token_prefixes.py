"""Define the tokens with a prefix that names their issuer.

The patterns come from what the issuers publish about their tokens. Prefixes that are also part of common words (`pat`,
`key-`) are left out because searching for them costs too much, and a token without a prefix looks like any other word.
"""

from __future__ import annotations

import re
from typing import NamedTuple

_WORD = rb"[A-Za-z0-9]"
_URL = rb"[A-Za-z0-9_-]"
_HEX = rb"[0-9a-f]"
_END = rb"(?![A-Za-z0-9_-])"


class TokenRule(NamedTuple):
    """One rule: its name, the text in docs/secrets.md, and each prefix with the pattern of what follows."""

    name: str
    help: str
    tokens: tuple[tuple[bytes, bytes], ...]

    @property
    def marks(self) -> tuple[bytes, ...]:
        return tuple(dict.fromkeys(mark for mark, _ in self.tokens))

    @property
    def pattern(self) -> bytes:
        return rb"(?:" + rb"|".join(re.escape(mark) + rest for mark, rest in self.tokens) + rb")" + _END


TOKEN_RULES = (
    TokenRule(
        "model-key",
        "keys for models: Groq `gsk_…`, xAI `xai-…`, OpenRouter `sk-or-v1-…`, Perplexity `pplx-…`, Replicate `r8_…`, "
        "NVIDIA `nvapi-…`, Cerebras `csk-…`, Together `tgp_v1_…`, DeepSeek `sk-…`, ElevenLabs `sk_…`, Jina `jina_…`, "
        "Tavily `tvly-…`, Firecrawl `fc-…`, Pinecone `pcsk_…`, LangSmith `lsv2_…`, Langfuse `sk-lf-…`, E2B `e2b_…`",
        (
            (b"gsk_", _WORD + rb"{52}"),
            (b"xai-", _WORD + rb"{80}"),
            (b"sk-", rb"or-(?:v1-)?" + _HEX + rb"{64}"),
            (b"pplx-", _WORD + rb"{48}"),
            (b"r8_", _WORD + rb"{37}"),
            (b"nvapi-", _URL + rb"{64}"),
            (b"csk-", rb"[a-z0-9]{48}"),
            (b"tgp_v1_", _URL + rb"{43}"),
            (b"sk-", _HEX + rb"{32}"),
            (b"sk_", _HEX + rb"{48}"),
            (b"jina_", _URL + rb"{60}"),
            (b"tvly-", rb"(?:dev-|prod-)?" + _URL + rb"{32}"),
            (b"fc-", _HEX + rb"{32}"),
            (b"pcsk_", rb"[A-Za-z0-9]{4,8}_" + _WORD + rb"{60,70}"),
            (b"lsv2_", rb"(?:pt|sk)_" + _HEX + rb"{32}_" + _HEX + rb"{10}"),
            (b"sk-", rb"lf-" + _HEX + rb"{8}(?:-" + _HEX + rb"{4}){3}-" + _HEX + rb"{12}"),
            (b"e2b_", _HEX + rb"{40}"),
        ),
    ),
    TokenRule(
        "work-token",
        "Linear `lin_api_…`, `lin_oauth_…`, Notion `ntn_…`, Figma `figd_…`, Atlassian `ATATT3…`, `ATCTT3…`, Postman "
        "`PMAK-…`, Contentful `CFPAT-…`, HubSpot `pat-na1-…`, Typeform `tfp_…`, Discord's web hooks, 1Password `ops_…`",
        (
            (b"lin_", rb"api_" + _WORD + rb"{40}"),
            (b"lin_", rb"oauth_" + _HEX + rb"{64}"),
            (b"ntn_", rb"[0-9]{11}" + _WORD + rb"{35}"),
            (b"figd_", _URL + rb"{40}"),
            (b"ATATT3", rb"[A-Za-z0-9_=-]{60,255}"),
            (b"ATCTT3", rb"[A-Za-z0-9_=-]{60,255}"),
            (b"PMAK-", _HEX + rb"{24}-" + _HEX + rb"{34}"),
            (b"CFPAT-", _URL + rb"{43}"),
            (b"pat-", rb"(?:na|eu)[0-9]-" + _HEX + rb"{8}(?:-" + _HEX + rb"{4}){3}-" + _HEX + rb"{12}"),
            (b"tfp_", _URL + rb"{40,59}"),
            (b"discord.com/api/webhooks/", rb"[0-9]{17,20}/" + _URL + rb"{60,80}"),
            (b"discordapp.com/api/webhooks/", rb"[0-9]{17,20}/" + _URL + rb"{60,80}"),
            (b"ops_eyJ", rb"[A-Za-z0-9+/_-]{100,1500}"),
        ),
    ),
    TokenRule(
        "operations-token",
        "Grafana `glsa_…`, `glc_…`, Sentry `sntrys_…`, `sntryu_…`, New Relic `NRAK-…`, Dynatrace `dt0c01.…`, PostHog "
        "`phx_…`, Sonar `squ_…`, `sqp_…`, `sqa_…`, Sourcegraph `sgp_…`, CircleCI `CCIPAT_…`, Buildkite `bkua_…`, "
        "Tailscale `tskey-…`, Doppler `dp.pt.…`, Prefect `pnu_…`",
        (
            (b"glsa_", _WORD + rb"{32}_[0-9a-fA-F]{8}"),
            (b"glc_", rb"eyJ[A-Za-z0-9+/]{40,400}"),
            (b"sntrys_", rb"eyJ[A-Za-z0-9+/=_-]{60,600}"),
            (b"sntryu_", _HEX + rb"{64}"),
            (b"NRAK-", rb"[A-Z0-9]{27}"),
            (b"dt0c01.", rb"[A-Z0-9]{24}\.[A-Z0-9]{64}"),
            (b"phx_", _WORD + rb"{40,60}"),
            (b"squ_", _HEX + rb"{40}"),
            (b"sqp_", _HEX + rb"{40}"),
            (b"sqa_", _HEX + rb"{40}"),
            (b"sgp_", rb"(?:(?:" + _HEX + rb"{16}|local)_)?" + _HEX + rb"{40}"),
            (b"CCIPAT_", _WORD + rb"{22}_" + _HEX + rb"{40}"),
            (b"bkua_", _HEX + rb"{40}"),
            (b"tskey-", rb"(?:auth|api|client|scim|webhook)-" + _WORD + rb"{8,20}-" + _WORD + rb"{20,40}"),
            (b"dp.", rb"(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?" + _WORD + rb"{40,44}"),
            (b"pnu_", _WORD + rb"{36}"),
        ),
    ),
    TokenRule(
        "hosting-token",
        "Docker Hub `dckr_pat_…`, `dckr_oat_…`, Supabase `sbp_…`, `sb_secret_…`, Fly.io `fm2_…`, `fo1_…`, Netlify "
        "`nfp_…`, PlanetScale `pscale_tkn_…`, `pscale_pw_…`, Heroku `HRKU-…`, Neon `napi_…`, Render `rnd_…`, Pulumi "
        "`pul-…`, Alibaba Cloud `LTAI…`",
        (
            (b"dckr_", rb"pat_" + _URL + rb"{27}"),
            (b"dckr_", rb"oat_" + _URL + rb"{32}"),
            (b"sbp_", _HEX + rb"{40}"),
            (b"sb_secret_", _URL + rb"{20,40}"),
            (b"fm1r_", rb"[A-Za-z0-9+/_-]{80,1500}"),
            (b"fm2_", rb"[A-Za-z0-9+/_-]{80,1500}"),
            (b"fo1_", _URL + rb"{43}"),
            (b"nfp_", _WORD + rb"{36,40}"),
            (b"pscale_", rb"(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,64}"),
            (b"HRKU-AA", _URL + rb"{56,60}"),
            (b"napi_", rb"[a-z0-9]{60,68}"),
            (b"rnd_", _WORD + rb"{28,32}"),
            (b"pul-", _HEX + rb"{40}"),
            (b"LTAI", _WORD + rb"{20}"),
        ),
    ),
    TokenRule(
        "shop-token",
        "Square `sq0atp-…`, `sq0csp-…`, Braintree's, Shippo `shippo_live_…`, Brevo `xkeysib-…`, Resend `re_…`, Mapbox "
        "`sk.eyJ…`",
        (
            (b"sq0atp-", _URL + rb"{22}"),
            (b"sq0csp-", _URL + rb"{43}"),
            (b"access_token$production$", rb"[0-9a-z]{16}\$" + _HEX + rb"{32}"),
            (b"shippo_live_", _HEX + rb"{40}"),
            (b"xkeysib-", _HEX + rb"{64}-" + _WORD + rb"{16}"),
            (b"re_", _WORD + rb"{8}_" + _WORD + rb"{24}"),
            (b"sk.eyJ", _URL + rb"{40,200}\." + _URL + rb"{22}"),
        ),
    ),
    TokenRule(
        "package-token",
        "RubyGems `rubygems_…`, crates.io `cio…`, NuGet `oy2…`",
        (
            (b"rubygems_", _HEX + rb"{48}"),
            (b"cio", _WORD + rb"{32}"),
            (b"oy2", rb"[a-z0-9]{43}"),
        ),
    ),
)
