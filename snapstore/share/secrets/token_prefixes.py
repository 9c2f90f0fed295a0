"""Tokens with a prefix that names their issuer.

The patterns come from what the issuers publish about their tokens. A prefix that is also a part of common words (`pat`,
`key-`) is not worth its cost here, and a token without a prefix looks like any other word.
"""

from __future__ import annotations

from typing import NamedTuple

_WORD = rb"[A-Za-z0-9]"
_URL = rb"[A-Za-z0-9_-]"
_HEX = rb"[0-9a-f]"
_END = rb"(?![A-Za-z0-9_-])"


class TokenRule(NamedTuple):
    """One rule: its name, the text in docs/secrets.md, the prefixes, and the pattern."""

    name: str
    help: str
    marks: tuple[bytes, ...]
    pattern: bytes


def _any(*forms: bytes) -> bytes:
    return rb"(?:" + rb"|".join(forms) + rb")"


MAKERS = (
    TokenRule(
        "model-key",
        "keys for models: Groq `gsk_…`, xAI `xai-…`, OpenRouter `sk-or-v1-…`, Perplexity `pplx-…`, Replicate `r8_…`, "
        "NVIDIA `nvapi-…`, Cerebras `csk-…`, Together `tgp_v1_…`, DeepSeek `sk-…`, ElevenLabs `sk_…`, Jina `jina_…`, "
        "Tavily `tvly-…`, Firecrawl `fc-…`, Pinecone `pcsk_…`, LangSmith `lsv2_…`, Langfuse `sk-lf-…`, E2B `e2b_…`",
        (
            *(b"gsk_", b"xai-", b"sk-", b"pplx-", b"r8_", b"nvapi-", b"csk-", b"tgp_v1_", b"sk_", b"jina_", b"tvly-"),
            *(b"fc-", b"pcsk_", b"lsv2_", b"e2b_"),
        ),
        _any(
            rb"gsk_" + _WORD + rb"{52}",
            rb"xai-" + _WORD + rb"{80}",
            rb"sk-or-(?:v1-)?" + _HEX + rb"{64}",
            rb"pplx-" + _WORD + rb"{48}",
            rb"r8_" + _WORD + rb"{37}",
            rb"nvapi-" + _URL + rb"{64}",
            rb"csk-[a-z0-9]{48}",
            rb"tgp_v1_" + _URL + rb"{43}",
            rb"sk-" + _HEX + rb"{32}",
            rb"sk_" + _HEX + rb"{48}",
            rb"jina_" + _URL + rb"{60}",
            rb"tvly-(?:dev-|prod-)?" + _URL + rb"{32}",
            rb"fc-" + _HEX + rb"{32}",
            rb"pcsk_[A-Za-z0-9]{4,8}_" + _WORD + rb"{60,70}",
            rb"lsv2_(?:pt|sk)_" + _HEX + rb"{32}_" + _HEX + rb"{10}",
            rb"sk-lf-" + _HEX + rb"{8}(?:-" + _HEX + rb"{4}){3}-" + _HEX + rb"{12}",
            rb"e2b_" + _HEX + rb"{40}",
        )
        + _END,
    ),
    TokenRule(
        "work-token",
        "Linear `lin_api_…`, `lin_oauth_…`, Notion `ntn_…`, Figma `figd_…`, Atlassian `ATATT3…`, `ATCTT3…`, Postman "
        "`PMAK-…`, Contentful `CFPAT-…`, HubSpot `pat-na1-…`, Typeform `tfp_…`, Discord's web hooks, 1Password `ops_…`",
        (
            *(b"lin_", b"ntn_", b"figd_", b"ATATT3", b"ATCTT3", b"PMAK-", b"CFPAT-", b"pat-", b"tfp_"),
            *(b"discord.com/api/webhooks/", b"discordapp.com/api/webhooks/", b"ops_eyJ"),
        ),
        _any(
            rb"lin_api_" + _WORD + rb"{40}",
            rb"lin_oauth_" + _HEX + rb"{64}",
            rb"ntn_[0-9]{11}" + _WORD + rb"{35}",
            rb"figd_" + _URL + rb"{40}",
            rb"AT[AC]TT3" + rb"[A-Za-z0-9_=-]{60,255}",
            rb"PMAK-" + _HEX + rb"{24}-" + _HEX + rb"{34}",
            rb"CFPAT-" + _URL + rb"{43}",
            rb"pat-(?:na|eu)[0-9]-" + _HEX + rb"{8}(?:-" + _HEX + rb"{4}){3}-" + _HEX + rb"{12}",
            rb"tfp_" + _URL + rb"{40,59}",
            rb"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/" + _URL + rb"{60,80}",
            rb"ops_eyJ[A-Za-z0-9+/_-]{100,1500}",
        )
        + _END,
    ),
    TokenRule(
        "operations-token",
        "Grafana `glsa_…`, `glc_…`, Sentry `sntrys_…`, `sntryu_…`, New Relic `NRAK-…`, Dynatrace `dt0c01.…`, PostHog "
        "`phx_…`, Sonar `squ_…`, `sqp_…`, `sqa_…`, Sourcegraph `sgp_…`, CircleCI `CCIPAT_…`, Buildkite `bkua_…`, "
        "Tailscale `tskey-…`, Doppler `dp.pt.…`, Prefect `pnu_…`",
        (
            *(b"glsa_", b"glc_", b"sntrys_", b"sntryu_", b"NRAK-", b"dt0c01.", b"phx_", b"squ_", b"sqp_", b"sqa_"),
            *(b"sgp_", b"CCIPAT_", b"bkua_", b"tskey-", b"dp.", b"pnu_"),
        ),
        _any(
            rb"glsa_" + _WORD + rb"{32}_[0-9a-fA-F]{8}",
            rb"glc_eyJ[A-Za-z0-9+/]{40,400}",
            rb"sntrys_eyJ[A-Za-z0-9+/=_-]{60,600}",
            rb"sntryu_" + _HEX + rb"{64}",
            rb"NRAK-[A-Z0-9]{27}",
            rb"dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}",
            rb"phx_" + _WORD + rb"{40,60}",
            rb"sq[upa]_" + _HEX + rb"{40}",
            rb"sgp_(?:(?:" + _HEX + rb"{16}|local)_)?" + _HEX + rb"{40}",
            rb"CCIPAT_" + _WORD + rb"{22}_" + _HEX + rb"{40}",
            rb"bkua_" + _HEX + rb"{40}",
            rb"tskey-(?:auth|api|client|scim|webhook)-" + _WORD + rb"{8,20}-" + _WORD + rb"{20,40}",
            rb"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?" + _WORD + rb"{40,44}",
            rb"pnu_" + _WORD + rb"{36}",
        )
        + _END,
    ),
    TokenRule(
        "hosting-token",
        "Docker Hub `dckr_pat_…`, `dckr_oat_…`, Supabase `sbp_…`, `sb_secret_…`, Fly.io `fm2_…`, `fo1_…`, Netlify "
        "`nfp_…`, PlanetScale `pscale_tkn_…`, `pscale_pw_…`, Heroku `HRKU-…`, Neon `napi_…`, Render `rnd_…`, Pulumi "
        "`pul-…`, Alibaba Cloud `LTAI…`",
        (
            *(b"dckr_", b"sbp_", b"sb_secret_", b"fm1r_", b"fm2_", b"fo1_", b"nfp_", b"pscale_", b"HRKU-AA", b"napi_"),
            *(b"rnd_", b"pul-", b"LTAI"),
        ),
        _any(
            rb"dckr_pat_" + _URL + rb"{27}",
            rb"dckr_oat_" + _URL + rb"{32}",
            rb"sbp_" + _HEX + rb"{40}",
            rb"sb_secret_" + _URL + rb"{20,40}",
            rb"fm(?:1r|2)_[A-Za-z0-9+/_-]{80,1500}",
            rb"fo1_" + _URL + rb"{43}",
            rb"nfp_" + _WORD + rb"{36,40}",
            rb"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,64}",
            rb"HRKU-AA" + _URL + rb"{56,60}",
            rb"napi_[a-z0-9]{60,68}",
            rb"rnd_" + _WORD + rb"{28,32}",
            rb"pul-" + _HEX + rb"{40}",
            rb"LTAI" + _WORD + rb"{20}",
        )
        + _END,
    ),
    TokenRule(
        "shop-token",
        "Square `sq0atp-…`, `sq0csp-…`, Braintree's, Shippo `shippo_live_…`, Brevo `xkeysib-…`, Resend `re_…`, Mapbox "
        "`sk.eyJ…`",
        (b"sq0atp-", b"sq0csp-", b"access_token$production$", b"shippo_live_", b"xkeysib-", b"re_", b"sk.eyJ"),
        _any(
            rb"sq0atp-" + _URL + rb"{22}",
            rb"sq0csp-" + _URL + rb"{43}",
            rb"access_token\$production\$[0-9a-z]{16}\$" + _HEX + rb"{32}",
            rb"shippo_live_" + _HEX + rb"{40}",
            rb"xkeysib-" + _HEX + rb"{64}-" + _WORD + rb"{16}",
            rb"re_" + _WORD + rb"{8}_" + _WORD + rb"{24}",
            rb"sk\.eyJ" + _URL + rb"{40,200}\." + _URL + rb"{22}",
        )
        + _END,
    ),
    TokenRule(
        "package-token",
        "RubyGems `rubygems_…`, crates.io `cio…`, NuGet `oy2…`",
        (b"rubygems_", b"cio", b"oy2"),
        _any(rb"rubygems_" + _HEX + rb"{48}", rb"cio" + _WORD + rb"{32}", rb"oy2[a-z0-9]{43}") + _END,
    ),
)
