# SPDX-License-Identifier: MIT
"""Google's client as we use it: credentials, deadlines, a service that goes away."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from burst_gke.cloud import Cloud
from burst_gke.provider import GkeProvider
from google.auth.credentials import Credentials
from google.auth.exceptions import RefreshError, TransportError
from google.cloud.container_v1 import ClusterManagerClient
from google.cloud.container_v1.types import NodePool, Operation, StatusCondition

from burst.errors import BurstError, Refused, Transient
from burst.provider import Phase
from tests.plugins.gke import build
from tests.plugins.gke.build import World
from tests.plugins.gke.gke import Gke
from tests.plugins.gke.server import Token
from tests.support.servers import served

PARENT = "projects/some-project/locations/us-central1-a"


def _lost() -> RefreshError:
    """Return what Google's library raises where its request got no answer."""
    error = RefreshError("the token could not be fetched")
    error.__cause__ = TransportError("timed out")
    return error


class Expiring(Credentials):
    """A token for one look each."""

    def __init__(self, trouble: Exception | None = None) -> None:
        super().__init__()
        self.count = 0
        self.trouble = trouble

    @property
    def valid(self) -> bool:
        return False

    def refresh(self, request: Any) -> None:
        if self.trouble:
            raise self.trouble
        self.count += 1
        self.token = f"token-{self.count}"


def test_a_token_is_refreshed_when_it_is_old(client: ClusterManagerClient) -> None:
    cloud = Cloud(PARENT, client=client, credentials=Expiring())
    assert [cloud.token(), cloud.token()] == ["token-1", "token-2"]


@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        (RefreshError("the metadata server is busy", retryable=True), Transient),
        (TransportError("no route to the metadata server"), Transient),
        (_lost(), Transient),
        (RefreshError("Reauthentication is needed"), Refused),
    ],
)
def test_credentials_that_cannot_be_refreshed_are_a_decision(
    client: ClusterManagerClient, trouble: Exception, kind: type[BurstError]
) -> None:
    cloud = Cloud(PARENT, client=client, credentials=Expiring(trouble))
    for call in (cloud.clusters, cloud.token):
        with pytest.raises(kind, match=str(trouble)):
            call()


def test_without_credentials_one_is_told_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NO_GCE_CHECK", "true")
    provider = GkeProvider("gke", build.settings(), "owner-a")
    with pytest.raises(Refused, match="gcloud auth application-default login"):
        provider.observe()


class LoginServer(ThreadingHTTPServer):
    """Issues access tokens that expire at once, for refresh tokens."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Login)
        self.good = {"first"}
        """The refresh tokens that it takes."""

    def write(self, file: Path, refresh_token: str) -> None:
        """Write credentials, as `gcloud auth application-default login` does."""
        table = {
            "type": "external_account_authorized_user",
            "audience": "//iam.googleapis.com/locations/global/workforcePools/site",
            "client_id": "somebody",
            "client_secret": "swordfish",
            "token_url": f"http://127.0.0.1:{self.server_port}/v1/token",
            "refresh_token": refresh_token,
        }
        file.write_text(json.dumps(table))


class _Login(BaseHTTPRequestHandler):
    server: LoginServer

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        (given,) = parse_qs(self.rfile.read(length).decode())["refresh_token"]
        known = given in self.server.good
        told = {"access_token": f"token-of-{given}", "expires_in": 1}
        content = json.dumps(told if known else {"error": "invalid_grant"}).encode()
        self.send_response(200 if known else 400)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_request(self, *_: object) -> None:
        """Log nothing of requests."""


@pytest.fixture
def login() -> Iterator[LoginServer]:
    server = LoginServer()
    with served(server):
        yield server


def test_a_new_login_is_read_once_the_old_one_is_refused(
    login: LoginServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "credentials.json"
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    login.write(file, "first")
    cloud = Cloud(PARENT)
    assert cloud.token() == "token-of-first"
    login.good = {"second"}
    for _ in range(2):
        with pytest.raises(Refused, match="invalid_grant"):
            cloud.token()
    login.write(file, "second")
    assert cloud.token() == "token-of-second"


class Crossing(Expiring):
    """Credentials in whose first refresh another thread comes between."""

    def __init__(self, token: str, trouble: Exception | None = None) -> None:
        super().__init__(trouble)
        self.name = token
        self.cross: Callable[[], None] | None = None

    def refresh(self, request: Any) -> None:
        cross, self.cross = self.cross, None
        if cross:
            cross()
        super().refresh(request)
        self.token = self.name


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> list[Crossing]:
    """Return what this machine's credentials are, one after the other."""
    stored = [Crossing("old"), Crossing("new")]
    monkeypatch.setattr("google.auth.default", lambda **_: (stored.pop(0), "hpc"))
    return stored


def refused(cloud: Cloud, credentials: Crossing) -> None:
    """Have Google refuse the credentials of a call."""
    credentials.trouble = RefreshError("invalid_grant")
    with pytest.raises(Refused, match="invalid_grant"):
        cloud.token()
    credentials.trouble = None


def test_a_token_is_returned_though_another_thread_is_refused(
    stored: list[Crossing],
) -> None:
    cloud, (old, _) = Cloud(PARENT), stored
    assert cloud.token() == "old"
    old.cross = lambda: refused(cloud, old)
    assert cloud.token() == "old"
    assert cloud.token() == "new"


def test_a_late_refusal_keeps_what_another_thread_has_read(
    stored: list[Crossing],
) -> None:
    cloud, (old, _) = Cloud(PARENT), stored
    assert cloud.token() == "old"

    def cross() -> None:
        refused(cloud, old)
        assert cloud.token() == "new"
        old.trouble = RefreshError("invalid_grant")

    old.cross = cross
    with pytest.raises(Refused, match="invalid_grant"):
        cloud.token()
    assert stored == []
    assert cloud.token() == "new"


def test_a_hanging_service_is_given_up(gke: Gke, client: ClusterManagerClient) -> None:
    gke.hangs["list_clusters"] = threading.Event()
    cloud = Cloud(PARENT, client=client, credentials=Token(), timeout=0.2)
    with pytest.raises(Transient, match="Deadline Exceeded"):
        cloud.clusters()


@pytest.mark.filterwarnings("ignore:Unrecognized .* enum value")
def test_values_that_are_newer_than_the_client_hide_and_keep_nothing(
    form: World,
) -> None:
    """The client reads a number that it does not know as a plain int."""
    form.provision()
    thing = next(iter(form.gke.things().values()))
    condition = StatusCondition(message="be careful")
    StatusCondition.pb(condition).code = 99
    thing.conditions = [condition]
    type(thing).pb(thing).status = 42
    (job,) = form.gke.jobs
    Operation.pb(job.operation).operation_type = 77
    status = form.status()
    assert status.phase is Phase.PENDING
    assert status.why == f"{form.name} is 42: be careful"
    cloud = Cloud(PARENT, client=form.client, credentials=Token())
    target = "clusters/shared/nodePools" if isinstance(thing, NodePool) else "clusters"
    (operation,) = cloud.operations(f"{target}/{form.name}")
    assert operation.kind == "77"
    form.reap()
    assert form.gke.things() == {}
