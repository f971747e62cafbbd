# SPDX-License-Identifier: MIT
"""Credentials from wherever they are, and what is said where there are none."""

import json
import logging
import os
from pathlib import Path
from typing import Any

import pytest

from burst.errors import Refused, Transient
from burst.kits.kube import (
    Access,
    Cluster,
    Endpoint,
    InCluster,
    Kubeconfig,
    choose_access,
    server_of,
)
from tests.kits.kubeserver import Said, api_server, kubeconfig
from tests.support.set_clock import SetClock

VERSION = 200, {"gitVersion": "v1.34.4"}
NOT_AUTHORIZED = 401, {"kind": "Status", "reason": "Unauthorized"}


@pytest.fixture(autouse=True)
def plain(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An environment in which nothing of this machine's is found."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def server(server: Said) -> Said:
    server.answer("GET", "/version", VERSION)
    return server


CREDENTIAL = (
    '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
    ' "status": {"token": "fresh"}}'
)


@pytest.mark.parametrize(
    ("user", "sent"),
    [
        ({"token": "good"}, "Bearer good"),
        # Relative to the file.
        ({"tokenFile": "token"}, "Bearer beside"),
        (f"echo '{CREDENTIAL}'", "Bearer fresh"),
    ],
    ids=["token", "file", "plugin"],
)
def test_a_token_of_the_file_is_sent(
    server: Said, tmp_path: Path, user: Any, sent: str
) -> None:
    (tmp_path / "token").write_text("beside")
    user = plugin(tmp_path, user) if isinstance(user, str) else user
    path = kubeconfig(tmp_path / "config", server.url, user)
    assert Cluster(Kubeconfig(path, "here")).version() == "v1.34.4"
    assert server.asked == [("GET", "/version", sent)]


def test_a_token_that_is_turned_down_is_read_anew_once(
    server: Said, tmp_path: Path
) -> None:
    path = kubeconfig(tmp_path / "config", server.url, {"token": "old"})
    cluster = Cluster(Kubeconfig(path))
    cluster.version()
    kubeconfig(tmp_path / "config", server.url, {"token": "new"})
    server.answer("GET", "/version", NOT_AUTHORIZED, VERSION)
    assert cluster.version() == "v1.34.4"
    sent = [authorization for _, _, authorization in server.asked]
    assert sent == ["Bearer old", "Bearer old", "Bearer new"]


@pytest.mark.parametrize("moved", [True, False], ids=["server", "proxy"])
def test_another_server_that_the_file_names_later_is_not_asked(
    server: Said, tmp_path: Path, moved: bool
) -> None:
    """The bursts would seem to be gone."""
    path = kubeconfig(tmp_path / "config", server.url, {"token": "old"})
    cluster = Cluster(Kubeconfig(path))
    cluster.version()
    with api_server() as other:
        other.answer("GET", "/version", VERSION)
        url = other.url if moved else server.url
        kubeconfig(tmp_path / "config", url, {"token": "new"})
        if not moved:
            found = json.loads(Path(path).read_text())
            found["clusters"][0]["cluster"]["proxy-url"] = "http://me:hush@127.0.0.1:1"
            Path(path).write_text(json.dumps(found))
        server.answer("GET", "/version", NOT_AUTHORIZED)
        for _ in range(2):
            with pytest.raises(Refused, match="now names another API server") as caught:
                cluster.version()
            assert url in caught.value.what
            assert "hush" not in str(caught.value)
        assert not other.asked
    assert len(server.asked) == 2
    kubeconfig(tmp_path / "config", server.url, {"token": "new"})
    server.answer("GET", "/version", VERSION)
    assert cluster.version() == "v1.34.4"


def two_contexts(
    path: Path, servers: tuple[str, str], user: dict[str, Any], current: str
) -> str:
    """Write a kubeconfig with the contexts a and b; return its path."""
    named = tuple(zip("ab", servers, strict=True))
    config = {
        "current-context": current,
        "clusters": [{"name": n, "cluster": {"server": url}} for n, url in named],
        "users": [{"name": "a", "user": user}, {"name": "b", "user": {"token": "b"}}],
        "contexts": [{"name": n, "context": {"cluster": n, "user": n}} for n in "ab"],
    }
    path.write_text(json.dumps(config))
    return str(path)


def test_another_current_context_does_not_count(server: Said, tmp_path: Path) -> None:
    """As after `kubectl config use-context`."""
    file = tmp_path / "config"
    with api_server() as other:
        urls = server.url, other.url
        path = two_contexts(file, urls, {"token": "old"}, "a")
        cluster = Cluster(choose_access(path))
        cluster.version()
        two_contexts(file, urls, {"token": "new"}, "b")
        server.answer("GET", "/version", NOT_AUTHORIZED, VERSION)
        assert cluster.version() == "v1.34.4"
        assert not other.asked
    assert server.asked[-1] == ("GET", "/version", "Bearer new")


def test_another_current_context_does_not_count_before_the_first_answer(
    tmp_path: Path,
) -> None:
    file = tmp_path / "config"
    user = plugin(tmp_path, "exit 3")
    with api_server() as other:
        other.answer("GET", "/version", VERSION)
        urls = "https://127.0.0.1:1", other.url
        cluster = Cluster(choose_access(two_contexts(file, urls, user, "a")))
        for current in "ab":
            two_contexts(file, urls, user, current)
            with pytest.raises(Transient, match="gives no credentials"):
                cluster.version()
        assert not other.asked


@pytest.mark.filterwarnings("ignore:SOCKS support")
def test_a_proxy_that_needs_another_package_is_refused(tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", "https://far.example", {"token": "t"})
    found = json.loads(Path(path).read_text())
    found["clusters"][0]["cluster"]["proxy-url"] = "socks5://127.0.0.1:1"
    Path(path).write_text(json.dumps(found))
    with pytest.raises(Refused, match="needs PySocks"):
        Cluster(Kubeconfig(path)).version()


def test_credentials_that_are_not_good_are_refused_and_not_told(
    server: Said, tmp_path: Path
) -> None:
    """Only after a while: an authenticator that is down answers in the same way."""
    path = kubeconfig(tmp_path / "config", server.url, {"token": "hush-hush"})
    server.answer("GET", "/version", NOT_AUTHORIZED)
    clock = SetClock()
    cluster = Cluster(Kubeconfig(path), clock=clock)
    for error, asked in ((Transient, 2), (Refused, 4)):
        with pytest.raises(error, match="does not accept the credentials") as caught:
            cluster.version()
        assert len(server.asked) == asked
        assert path in caught.value.what
        assert "hush-hush" not in str(caught.value)
        clock.now = 120


def test_credentials_that_work_again_were_good(server: Said, tmp_path: Path) -> None:
    path = kubeconfig(tmp_path / "config", server.url, {"token": "good"})
    clock = SetClock()
    cluster = Cluster(Kubeconfig(path), clock=clock)
    for _ in range(2):
        server.answer("GET", "/version", NOT_AUTHORIZED)
        with pytest.raises(Transient):
            cluster.version()
        server.answer("GET", "/version", VERSION)
        assert cluster.version() == "v1.34.4"
        clock.now += 120


def plugin(tmp_path: Path, script: str) -> dict[str, Any]:
    """Return a user with an exec plugin that runs this."""
    program = tmp_path / "plugin"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    version = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": version, "command": str(program)}}


def test_an_exec_plugin_that_fails_is_told_of(tmp_path: Path) -> None:
    user = plugin(tmp_path, "echo gone fishing >&2; exit 3")
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user)
    handlers = list(logging.getLogger().handlers)
    clock = SetClock()
    cluster = Cluster(Kubeconfig(path), clock=clock)
    for now, error in ((0, Transient), (119, Transient), (120, Refused)):
        clock.now = now
        with pytest.raises(error, match="gives no credentials") as caught:
            cluster.version()
        assert "process returned 3. gone fishing" in caught.value.what
        assert "kubectl get pods" in caught.value.advice
    assert logging.getLogger().handlers == handlers


def test_an_exec_plugin_that_hangs_is_ended_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    running = tmp_path / "running"
    os.mkfifo(running)
    # Both hold the fifo open for as long as they live.
    user = plugin(tmp_path, f"exec 3> '{running}'; sleep 600 & sleep 600")
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user)
    cluster = Cluster(Kubeconfig(path, login=0.2))
    ends = os.open(running, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(Transient, match="gave no credentials in time") as caught:
            cluster.version()
        assert "no credentials within 0.2 s" in caught.value.what
        os.set_blocking(ends, True)
        assert os.read(ends, 1) == b""
    finally:
        os.close(ends)


NO_PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/plugin"}


@pytest.mark.parametrize(
    ("user", "words"),
    [
        ({"exec": NO_PLUGIN}, "/no/plugin: cannot be run: No such file or directory"),
        ({"exec": {}}, "missing key 'command'"),
        ({}, "gives no credentials;"),
    ],
)
def test_a_user_of_a_file_who_has_no_credentials_is_told_of(
    user: dict[str, Any], words: str, tmp_path: Path
) -> None:
    path = kubeconfig(tmp_path / "config", "https://127.0.0.1:1", user)
    with pytest.raises(Refused, match=words):
        Cluster(Kubeconfig(path)).version()


@pytest.mark.parametrize(
    ("text", "words"),
    [(None, "the file does not exist"), ("{", "cannot be used"), ("[]", "cannot be")],
)
def test_a_file_that_cannot_be_used(
    tmp_path: Path, text: str | None, words: str
) -> None:
    path = tmp_path / "config"
    if text is not None:
        path.write_text(text)
    with pytest.raises(Refused, match=words) as caught:
        Cluster(Kubeconfig(str(path))).version()
    assert str(path) in caught.value.what
    kubeconfig(path, "https://127.0.0.1:1", {"token": "t"})
    with pytest.raises(Refused, match=r"context there: .*there"):
        Cluster(Kubeconfig(str(path), "there")).version()


def test_an_endpoint_asks_for_its_token_each_time(server: Said) -> None:
    tokens = iter(f"t{number}" for number in range(9))
    cluster = Cluster(Endpoint(server.url, "", lambda: next(tokens)))
    cluster.version()
    cluster.version()
    sent = [authorization for _, _, authorization in server.asked]
    assert len(set(sent)) == 2
    assert all(text.startswith("Bearer t") for text in sent)


def test_what_a_token_source_raises_is_passed_on(server: Said) -> None:
    def token() -> str:
        raise Refused("no login", "gcloud auth login")

    with pytest.raises(Refused, match="no login"):
        Cluster(Endpoint(server.url, "", token)).version()


def test_another_server_than_the_authority_vouches_for(tmp_path: Path) -> None:
    """A plain HTTP server is no TLS server at all; that counts as not the right one."""
    with api_server() as said:
        url = said.url.replace("http:", "https:")
        path = kubeconfig(tmp_path / "config", url, {"token": "t"})
        with pytest.raises(Refused, match="is not the API server that") as caught:
            Cluster(Kubeconfig(path)).version()
    assert path in caught.value.what


def test_nobody_is_there() -> None:
    cluster = Cluster(Endpoint("http://127.0.0.1:1", "", lambda: "t"))
    with pytest.raises(Transient, match=r"cannot be reached: .*refused"):
        cluster.version()


IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}


@pytest.mark.parametrize(
    ("environ", "given", "expected"),
    [
        ({}, ("", ""), Kubeconfig()),
        ({}, ("/file", "here"), Kubeconfig("/file", "here")),
        (IN_POD, ("", ""), InCluster()),
        (IN_POD, ("/f", ""), Kubeconfig("/f")),
        ({**IN_POD, "KUBECONFIG": "/f"}, ("", ""), Kubeconfig()),
    ],
)
def test_what_is_used_where_nothing_is_said(
    monkeypatch: pytest.MonkeyPatch,
    environ: dict[str, str],
    given: tuple[str, str],
    expected: Access,
) -> None:
    for name, value in environ.items():
        monkeypatch.setenv(name, value)
    assert choose_access(*given) == expected


def test_each_access_says_what_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refused, match="the pod's service account: cannot be used"):
        Cluster(InCluster()).version()
    assert str(Kubeconfig()) == "~/.kube/config"
    assert str(Kubeconfig("/f", "c")) == "/f, context c"
    monkeypatch.setenv("KUBECONFIG", "/g")
    assert str(Kubeconfig()) == "/g"
    assert str(Endpoint("https://a", "", str)) == "https://a"


@pytest.mark.parametrize(
    ("url", "tls_name", "told"),
    [
        ("https://one.example:6443", "", "one.example"),
        ("https://one.example:443/", "", "one.example"),
        ("https://one.example", "", "one.example"),
        ("https://one.example:16443", "", "one.example (:16443)"),
        ("https://one.example/k8s/c-a", "", "one.example (/k8s/c-a)"),
        ("https://one.example:8443/a", "b.c", "one.example (:8443/a as b.c)"),
        ("https://10.0.0.1", "b.c", "10.0.0.1 (as b.c)"),
        ("https://127.0.0.1:6443", "", "127.0.0.1 (:6443)"),
        ("https://localhost:443", "", "localhost (:443)"),
        ("https://[::1]:6443", "", "::1 (:6443)"),
    ],
)
def test_the_server_of_an_access_is_known_without_asking_it(
    tmp_path: Path, url: str, tls_name: str, told: str
) -> None:
    """One host may serve several clusters, so its name alone is no place."""
    path = tmp_path / "config"
    more = f", tls-server-name: {tls_name}" if tls_name else ""
    path.write_text(
        "current-context: a\n"
        "contexts: [{name: a, context: {cluster: one, user: u}},"
        " {name: b, context: {cluster: two, user: u}}]\n"
        f"clusters: [{{name: one, cluster: {{server: '{url}'{more}}}}},"
        " {name: two, cluster: {server: 'https://two.example'}}]\n"
        "users: [{name: u, user: {exec: {command: /nonexistent}}}]\n"
    )
    assert server_of(Kubeconfig(str(path))) == told
    assert server_of(Kubeconfig(str(path), "b")) == "two.example"
    assert server_of(Kubeconfig(str(path), "c")) == f"{path}, context c"


def test_entries_that_are_not_used_do_not_hide_the_server(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(
        "current-context: a\n"
        "contexts: [{name: odd, context: none},"
        " {name: a, context: {cluster: one, user: u}},"
        " {name: b, context: {cluster: bad, user: u}}]\n"
        "clusters: [{name: bad, cluster: {server: 'https://bad.example:port'}},"
        " {name: one, cluster: {server: 'https://one.example'}}]\n"
    )
    assert server_of(Kubeconfig(str(path))) == "one.example"
    for context in ("odd", "b"):
        there = Kubeconfig(str(path), context)
        assert server_of(there) == f"{path}, context {context}"


def test_the_server_of_another_access() -> None:
    assert server_of(Kubeconfig("/nonexistent")) == "/nonexistent"
    assert server_of(Endpoint("https://three.example:443", "", str)) == "three.example"
    assert "pod" in server_of(InCluster())
