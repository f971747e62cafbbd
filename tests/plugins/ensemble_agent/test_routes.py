# SPDX-License-Identifier: MIT
"""Agents of ensembles over HTTP: what is refused, by whom, and how clients are told."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any, ClassVar

import msgspec
import pytest
from burst_ensemble_agent.client import AgentClient, AgentTrouble
from burst_ensemble_agent.report import REPORT_BYTES, REPORT_VERSION, AgentAnswer
from burst_ensemble_agent.routes import agent_routes

from burst.errors import ConfigError
from tests.http.clients import serving
from tests.http.tls_proxy import make_certificate, tls_proxy
from tests.plugins.ensemble.http.served import served_by
from tests.plugins.ensemble_agent.agent_site import Outside
from tests.plugins.ensemble_agent.agents import report
from tests.support.servers import served

TOKEN = "0123456789abcdef"


@pytest.fixture
def outside() -> Outside:
    return Outside()


@pytest.fixture
def url(outside: Outside) -> Iterator[str]:
    """Where a daemon with these routes is asked."""
    routes = agent_routes(served_by(outside.site))
    with serving(*routes, token=TOKEN.encode()) as server:
        yield f"http://127.0.0.1:{server.port}"


@pytest.fixture
def token(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(TOKEN)
    path.chmod(0o600)
    return path


def test_a_report_is_taken_and_answered(url: str, token: Path) -> None:
    client = AgentClient(f"{url}/", str(token))
    answer = client.post("sweep.m", report())
    assert answer == AgentAnswer(version=REPORT_VERSION, check=10.0, run="-f4242")
    with pytest.raises(AgentTrouble, match=r"\(409\): stale"):
        client.post("sweep.m", report())


def test_a_wrong_token_is_refused(url: str, token: Path, outside: Outside) -> None:
    client = AgentClient(url, str(token))
    token.write_text("another-token-of-16")
    with pytest.raises(AgentTrouble, match=r"\(401\): the token is missing"):
        client.post("sweep.m", report())
    assert outside.reports.last == {}
    token.write_text(TOKEN)
    client.post("sweep.m", report())


def test_an_oversize_report_is_refused(url: str, token: Path, outside: Outside) -> None:
    large = report(refused={"a": "x" * REPORT_BYTES})
    with pytest.raises(AgentTrouble):
        AgentClient(url, str(token)).post("sweep.m", large)
    assert outside.reports.last == {}


class Strange(BaseHTTPRequestHandler):
    """A server that is not a daemon."""

    says = b""
    status = 200
    lost = 0
    seen: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.seen.append(self.path)
        self.send_response(self.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", str(len(self.says) + self.lost))
        self.end_headers()
        self.wfile.write(self.says)

    def do_GET(self) -> None:
        self.seen.append(self.path)
        self.send_error(404)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


@contextmanager
def strange(**attributes: Any) -> Iterator[tuple[str, list[str]]]:
    """Yield the URL of a `Strange` with these, and the paths that it was asked for."""
    seen: list[str] = []
    handler = type("Handler", (Strange,), {**attributes, "seen": seen})
    server = HTTPServer(("127.0.0.1", 0), handler)
    with served(server):
        yield f"http://127.0.0.1:{server.server_port}", seen


WHOLE = msgspec.json.encode(AgentAnswer(version=REPORT_VERSION, check=1.0))
VERSION_9 = msgspec.json.encode(AgentAnswer(version=9, check=1.0))


@pytest.mark.parametrize(
    ("status", "says", "lost", "what"),
    [
        (200, b"<html>", 0, "what answered is not a daemon"),
        (200, VERSION_9, 0, "answers in version 9"),
        (302, b"", 0, r"did not accept the report \(302\)"),
        # A daemon that ends while it answers is away.
        (200, b"", len(WHOLE), "cannot be reached"),
        (200, WHOLE[:10], len(WHOLE) - 10, "cannot be reached"),
        (503, WHOLE[:10], len(WHOLE) - 10, "did not accept the report"),
    ],
)
def test_what_is_no_answer_of_a_daemon_is_told(
    token: Path, status: int, says: bytes, lost: int, what: str
) -> None:
    with strange(status=status, says=says, lost=lost) as (url, seen):
        client = AgentClient(url, str(token))
        with pytest.raises(AgentTrouble, match=what):
            client.post("sweep.m", report())
    assert seen == ["/ensembles-agent/sweep.m"], "no redirect is followed"


def test_a_token_goes_to_another_host_in_the_clear_only_where_that_is_said(
    token: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for other in ("https://10.1.2.3", "http://127.0.0.1:9", "http://localhost:9"):
        AgentClient(other, str(token))
    for host in ("10.1.2.3", "burst-daemon.burst.svc", "[fd00::1]"):
        url = f"http://{host}:9779"
        with pytest.raises(ConfigError, match="would send the token in the clear"):
            AgentClient(url, str(token))
    assert caplog.text == ""
    AgentClient(url, str(token), plain=True)
    assert "the token is sent in the clear to" in caplog.text


@pytest.mark.skipif(not shutil.which("openssl"), reason="want of openssl")
def test_a_proxy_that_ends_tls_is_trusted_by_its_certificate_only(
    url: str, token: Path, tmp_path: Path
) -> None:
    trusted, key = make_certificate(tmp_path, "proxy")
    other, _ = make_certificate(tmp_path, "other")
    port = int(url.rpartition(":")[2])
    with tls_proxy(port, trusted, key) as (listens, seen):
        where = f"https://localhost:{listens}"
        for authority in (str(other), ""):
            stranger = AgentClient(where, str(token), authority)
            with pytest.raises(AgentTrouble, match="certificate verify failed"):
                stranger.post("sweep.m", report())
        assert seen == [], "nothing was sent, the token neither"
        client = AgentClient(where, str(token), str(trusted))
        answer = client.post("sweep.m", report())
    assert answer == AgentAnswer(version=REPORT_VERSION, check=10.0, run="-f4242")
    assert TOKEN.encode() in b"".join(seen)


@pytest.mark.parametrize(
    "address", ["", "ftp://a", "127.0.0.1:9", "http://a?x=1", "https://u:p@a"]
)
def test_an_address_that_is_none_is_refused(token: Path, address: str) -> None:
    with pytest.raises(ConfigError):
        AgentClient(address, str(token))


def test_files_that_are_missing_are_refused(token: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        AgentClient("https://a", str(tmp_path / "none"))
    with pytest.raises(ConfigError, match="none"):
        AgentClient("https://a", str(token), str(tmp_path / "none"))
