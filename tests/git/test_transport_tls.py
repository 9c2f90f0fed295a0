"""https on real TLS: whom we believe, by what the user has told git or OpenSSL, and what is never sent to anybody else
(issue 7, S3-24)."""

from __future__ import annotations

import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import remotes
from helpers import all_refs, git, in_commit
from remotes import PASSWORD, USER, Certificate, bare, needs_lighttpd, needs_openssl
from test_transport import helper, pull_all, push_all
from transporting import MAIN, History, shadow_with

from snapstore.errors import Remote
from snapstore.git.objects import reachability
from snapstore.git.remote.connection import ConnectionFailed
from snapstore.git.remote.open import open_remote
from snapstore.surface.records.base import document
from snapstore.surface.records.errors import ErrorRecord

pytestmark = [needs_lighttpd, needs_openssl]


class Site:
    """A repository behind TLS, every byte that came through it, and the calls that go on."""

    def __init__(
        self,
        git_dir: Path,
        behind: int,
        port: int,
        shown: Certificate,
        heard: list[bytes],
        calls: list[socket.socket],
    ) -> None:
        self.git_dir = str(git_dir)
        self.behind = behind
        self.port = port
        self.certificate = str(shown.path)
        self.heard = heard
        self.calls = calls
        self.url = f"https://127.0.0.1:{port}/git/turns.git"

    def with_password(self, password: str = PASSWORD) -> str:
        return self.url.replace("https://", f"https://{USER}:{quote(password, safe='')}@")


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return remotes.certificate(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1", "DNS:localhost")


@pytest.fixture
def site(tmp_path: Path, shown: Certificate, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    for name in ("SSL_CERT_FILE", "SSL_CERT_DIR", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    git_dir = bare(tmp_path / "server" / "turns.git")
    heard: list[bytes] = []
    calls: list[socket.socket] = []
    with remotes.web(tmp_path / "server", tmp_path / "web") as url:
        behind = int(url.split(":")[2].split("/")[0])
        with remotes.tls(behind, shown, heard, calls) as port:
            yield Site(git_dir, behind, port, shown, heard, calls)


def configure(home: Path, text: str) -> None:
    with (home / ".gitconfig").open("a") as file:
        file.write(text + "\n")


def test_there_and_back_again_with_a_password(
    site: Site, tmp_path: Path, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over https: the certificate by git's variable, the password by the user's helper."""
    monkeypatch.setenv("GIT_SSL_CAINFO", site.certificate)
    diary = helper(nobodys_home, PASSWORD)
    history = History(tmp_path / "ours.git", turns=3)
    history.turn(bytes(range(256)) * 12_000)
    with open_remote(site.url, timeout=20) as remote:
        assert push_all(remote, history) == {MAIN: None}
    assert all_refs(site.git_dir) == {MAIN: history.tip.hex()}
    git(site.git_dir, "fsck", "--strict")
    assert "protocol=https" in diary.read_text()

    other = shadow_with(tmp_path / "other.git")
    with open_remote(site.url.replace("127.0.0.1", "localhost"), timeout=20) as remote:
        assert pull_all(remote, other) > 25
        assert pull_all(remote, other) == 0
    assert in_commit(other.git_dir, history.tip) == in_commit(str(history.git_dir), history.tip)


@pytest.mark.parametrize("way", ["setting", "setting for the host", "setting below home", "variable", "folder"])
def test_a_certificate_that_the_user_has_told_git(
    way: str, site: Site, tmp_path: Path, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What git takes, we take; a variable counts more than a setting, as it does there."""
    if way == "setting":
        configure(nobodys_home, f"[http]\n\tsslCAInfo = {site.certificate}")
    elif way == "setting for the host":
        configure(
            nobodys_home, f'[http]\n\tsslCAInfo = /nowhere\n[http "{site.url}"]\n\tsslCAInfo = {site.certificate}'
        )
    elif way == "setting below home":
        (nobodys_home / "known.pem").write_bytes(Path(site.certificate).read_bytes())
        configure(nobodys_home, "[http]\n\tsslCAInfo = ~/known.pem")
    elif way == "variable":
        configure(nobodys_home, "[http]\n\tsslCAInfo = /nowhere")
        monkeypatch.setenv("GIT_SSL_CAINFO", site.certificate)
    else:
        name = subprocess.check_output(["openssl", "x509", "-hash", "-noout", "-in", site.certificate], text=True)
        (tmp_path / f"{name.strip()}.0").symlink_to(site.certificate)
        monkeypatch.setenv("GIT_SSL_CAPATH", str(tmp_path))
    history = History(tmp_path / "ours.git", turns=1)
    with open_remote(site.with_password(), timeout=20) as remote:
        assert push_all(remote, history) == {MAIN: None}
        assert pull_all(remote, shadow_with(tmp_path / "other.git")) > 20
    assert subprocess.check_output(["git", "ls-remote", site.with_password(), MAIN]).startswith(
        history.tip.hex().encode()
    )


def test_an_unknown_certificate_is_refused_before_a_word_is_said(
    site: Site, tmp_path: Path, nobodys_home: Path
) -> None:
    """Neither the address's password nor the helper's leaves, and it is no use to ask again."""
    diary = helper(nobodys_home, PASSWORD)
    with open_remote(site.with_password(), timeout=20) as remote, pytest.raises(Remote) as refused:
        remote.refs(push=True)
    assert not isinstance(refused.value, ConnectionFailed), "the same certificate would come again"
    assert "could not prove its identity" in refused.value.message
    assert "http.sslCAInfo" in refused.value.hint
    assert PASSWORD not in str(document(ErrorRecord.of(refused.value))) and quote(PASSWORD, safe="") not in str(
        document(ErrorRecord.of(refused.value))
    )
    assert site.heard == []
    assert not diary.exists()
    assert "/git/" not in (tmp_path / "web" / "access.log").read_text()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_certificate_for_another_host_is_refused(
    host: str, site: Site, tmp_path: Path, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Known, and not this server's."""
    helper(nobodys_home, PASSWORD)
    other = remotes.certificate(tmp_path / "other", "DNS:elsewhere.example", "IP:127.0.0.2")
    monkeypatch.setenv("GIT_SSL_CAINFO", str(other.path))
    heard: list[bytes] = []
    with remotes.tls(site.behind, other, heard) as port:
        url = f"https://{USER}:secret@{host}:{port}/git/turns.git"
        with open_remote(url, timeout=20) as remote, pytest.raises(Remote, match=f"not prove.*{host}") as refused:
            remote.refs()
    assert "host name in the address" in refused.value.hint
    assert heard == []


@pytest.mark.parametrize("way", ["setting", "variable"])
def test_who_has_told_git_not_to_look_is_obeyed(
    way: str, site: Site, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """http.sslVerify and GIT_SSL_NO_VERIFY, which counts whatever it says. Off for one host is on for others."""
    if way == "variable":
        monkeypatch.setenv("GIT_SSL_NO_VERIFY", "")
    else:
        configure(nobodys_home, '[http "https://elsewhere.example"]\n\tsslVerify = false')
        with open_remote(site.with_password()) as remote, pytest.raises(Remote, match="could not prove"):
            remote.refs()
        configure(nobodys_home, f'[http "https://127.0.0.1:{site.port}"]\n\tsslVerify = false')
    with open_remote(site.with_password(), timeout=20) as remote:
        assert remote.refs() == {}


def test_a_push_after_the_server_hung_up(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While we look for what to send, a server may tire of waiting; the push calls again."""
    monkeypatch.setenv("GIT_SSL_CAINFO", site.certificate)
    history = History(tmp_path / "ours.git", turns=1)
    new = [item[0] for item in reachability.new_objects(history.shadow.objects, [history.tip], [])]
    with open_remote(site.with_password(), timeout=20) as remote:
        assert remote.refs(push=True) == {}
        for call in list(site.calls):
            call.shutdown(socket.SHUT_RDWR)
        end = time.monotonic() + 20
        while site.calls and time.monotonic() < end:
            time.sleep(0.005)
        assert site.calls == []
        assert remote.push({MAIN: (None, history.tip)}, new, history.shadow.objects) == {MAIN: None}
    assert all_refs(site.git_dir) == {MAIN: history.tip.hex()}


def test_through_a_proxy_that_sees_nothing(
    site: Site, tmp_path: Path, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that only the proxy knows; the proxy learns its name, and not the password."""
    beyond = remotes.certificate(tmp_path / "beyond", "DNS:beyond.invalid")
    monkeypatch.setenv("GIT_SSL_CAINFO", str(beyond.path))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    helper(nobodys_home, PASSWORD)
    asked: list[bytes] = []
    history = History(tmp_path / "ours.git", turns=1)
    with remotes.tls(site.behind, beyond) as port, remotes.tunnel(port, asked) as proxy:
        monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{proxy}")
        with open_remote("https://beyond.invalid/git/turns.git", timeout=20) as remote:
            assert push_all(remote, history) == {MAIN: None}
        with open_remote("https://other.invalid/git/turns.git") as remote, pytest.raises(Remote, match="not prove"):
            remote.refs()
    assert asked[0].startswith(b"CONNECT beyond.invalid:443 ")
    assert all(b"authorization" not in words.lower() for words in asked)


@pytest.mark.parametrize("way", ["setting", "variable"])
def test_a_certificate_of_our_own(
    way: str, site: Site, shown: Certificate, tmp_path: Path, nobodys_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that lets in only who shows one: http.sslCert and http.sslKey, or their variables."""
    monkeypatch.setenv("GIT_SSL_CAINFO", site.certificate)
    ours = remotes.certificate(tmp_path / "ours", "DNS:ada.example")
    with remotes.tls(site.behind, shown, caller=ours) as port:
        url = site.with_password().replace(str(site.port), str(port))
        if way == "setting":
            with open_remote(url, timeout=20) as remote, pytest.raises(ConnectionFailed):
                remote.refs()
            configure(nobodys_home, f"[http]\n\tsslCert = {ours.path}\n\tsslKey = {ours.key}")
        else:
            monkeypatch.setenv("GIT_SSL_CERT", str(ours.path))
            monkeypatch.setenv("GIT_SSL_KEY", str(ours.key))
        with open_remote(url, timeout=20) as remote:
            assert remote.refs() == {}


def test_an_https_address_of_a_server_without(site: Site) -> None:
    """Not asked again, and not over http instead."""
    with (
        open_remote(site.url.replace(str(site.port), str(site.behind))) as remote,
        pytest.raises(ConnectionFailed) as refused,
    ):
        remote.refs()
    assert not refused.value.again
    assert "TLS" in refused.value.message or "SSL" in refused.value.message


def test_certificates_that_cannot_be_read(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "none.pem").write_text("no certificate\n")
    # What git is built on takes a file without a certificate for a list of nobody.
    for path, said in ((tmp_path / "missing.pem", "cannot be read"), (tmp_path / "none.pem", "(be read|prove)")):
        monkeypatch.setenv("GIT_SSL_CAINFO", str(path))
        with open_remote(site.url) as remote, pytest.raises(Remote, match=said) as refused:
            remote.refs()
        assert "sslCAInfo" in refused.value.hint
    assert site.heard == []
