# SPDX-License-Identifier: MIT
"""Clients that do as they should, and clients that do not, over real sockets."""

import base64
import contextlib
import http.client
import os
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import waitress.channel
import waitress.server

from burst.config import parse_listen
from burst.errors import ConfigError
from burst.http.routes import (
    Access,
    HttpRequest,
    HttpResponse,
    Route,
    Routes,
    json_response,
    text_response,
)
from burst.http.server import HEAD_BYTES, IDLE_S, MOST_CONNECTIONS, THREADS, HttpServer
from tests.embedded_instance import short_directory
from tests.http.clients import ask, ask_socket, bearer, read_all, send_raw, serving
from tests.support.waiting import HANG_S, wait_until

TOKEN = "0123456789abcdef-secret"
AUTHORIZED = f"Authorization: Bearer {TOKEN}\r\n"


def echo(request: HttpRequest) -> HttpResponse:
    query = dict(request.query)
    return json_response([request.name, query, request.body.decode()])


def fail(_: HttpRequest) -> HttpResponse:
    raise RuntimeError("a handler's own error")


LARGE = HttpResponse(body=b"x" * 5_000_000)
ROUTES = (
    Route(path="/open", handler=lambda _: text_response("ok"), access=Access.ANYONE),
    Route(path="/told", handler=echo, access=Access.TOKEN),
    Route(path="/own", handler=echo),
    Route(path="/things/{name}", handler=echo, access=Access.TOKEN),
    Route(path="/fails", handler=fail, access=Access.ANYONE),
    Route(path="/post", handler=echo, method="POST", body_limit=64),
)


@pytest.fixture
def local() -> Iterator[int]:
    with serving(*ROUTES) as server:
        yield server.port


@pytest.fixture
def guarded() -> Iterator[int]:
    with serving(*ROUTES, token=TOKEN.encode()) as server:
        yield server.port


def test_a_route_answers_get_and_head(local: int) -> None:
    answer = ask(local, "/open")
    assert (answer.status, answer.body) == (200, "ok\n")
    assert answer.headers["Server"] == "burst"
    assert answer.headers["Cache-Control"] == "no-store"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    head = ask(local, "/open", "HEAD")
    assert (head.status, head.body) == (200, "")
    assert head.headers["Content-Length"] == "3"


def test_a_name_and_a_query_come_to_the_handler(local: int) -> None:
    assert (
        ask(local, "/things/a-1.b?x=1&y=%20").body == '["a-1.b",{"x":"1","y":" "},""]\n'
    )
    assert ask(local, "/told?" + "&".join(f"k{n}=1" for n in range(30))).status == 400


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/open/", "//open", "/OPEN", "/./open", "/x/../open", "/%6fpen"),
        *("/things/", "/things/..", "/things/.x", "/things/a/b", "/things/a%2fb"),
        *("/things/{name}", "/things/" + "a" * 101, "http://127.0.0.1/open"),
        *("/../../etc/passwd", "/open;x", "/open%00", "*"),
    ],
)
def test_what_is_written_in_another_way_is_no_route(local: int, path: str) -> None:
    answer = send_raw(local, f"GET {path} HTTP/1.0\r\n\r\n".encode())
    assert b" 404 " in answer.partition(b"\r\n")[0]


def test_only_methods_that_a_route_has_are_taken(local: int) -> None:
    for path, allowed in (("/open", "GET, HEAD"), ("/post", "POST")):
        method = "POST" if path == "/open" else "GET"
        answer = ask(local, path, method)
        assert (answer.status, answer.headers["Allow"]) == (405, allowed)
    for method in ("PUT", "DELETE", "TRACE", "CONNECT", "X" * 99):
        assert ask(local, "/open", method).status == 405


def test_without_a_token_only_the_unix_socket_gets_what_is_the_owners(
    local: int,
) -> None:
    assert ask(local, "/told").status == 200
    refused = ask(local, "/own")
    assert refused.status == 403
    assert "set http.token_file, or listen on a Unix socket" in refused.body
    assert ask(local, "/post", "POST", b"x").status == 403
    with short_directory() as directory:
        path = str(directory / "s")
        with serving(*ROUTES, listen=f"unix:{path}"):
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
            assert b'["",{},""]' in ask_socket(path, "/own")
        assert not os.path.exists(path)


WRONG = [
    {},
    bearer("wrong"),
    bearer(TOKEN + "x"),
    bearer(TOKEN[:-1]),
    bearer("0123456789abcdef-sécret"),
    {"Authorization": TOKEN},
    {"Authorization": "Bearer"},
    {"Authorization": f"Digest {TOKEN}"},
    {"Authorization": "Basic %%%"},
    {"Authorization": "Basic " + base64.b64encode(b"me:wrong").decode()},
    {"Authorization": "Basic " + base64.b64encode(TOKEN.encode()).decode()},
]


@pytest.mark.parametrize("path", ["/told", "/own", "/things/a"])
def test_a_token_that_is_set_is_needed(guarded: int, path: str) -> None:
    for headers in WRONG:
        answer = ask(guarded, path, headers=headers)
        assert answer.status == 401, headers
        assert answer.headers["WWW-Authenticate"].startswith("Basic realm=")
        assert TOKEN not in answer.body + str(answer.headers)
    assert ask(guarded, path, headers=bearer(TOKEN)).status == 200
    assert (
        ask(guarded, path, headers={"Authorization": f"bearer  {TOKEN} "}).status == 200
    )
    basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    assert ask(guarded, path, headers={"Authorization": f"Basic {basic}"}).status == 200
    assert ask(guarded, "/open").status == 200


def test_what_a_browser_sends_by_itself_is_not_enough_for_a_post(guarded: int) -> None:
    basic = base64.b64encode(f"anyone:{TOKEN}".encode()).decode()
    assert (
        ask(
            guarded, "/post", "POST", b"x", headers={"Authorization": f"Basic {basic}"}
        ).status
        == 401
    )
    assert (
        ask(guarded, "/post", "POST", b"x", headers=bearer(TOKEN)).body
        == '["",{},"x"]\n'
    )


def test_a_body_is_as_long_as_it_says_and_no_longer_than_the_route_takes(
    guarded: int,
) -> None:
    head = f"POST /post HTTP/1.1\r\nConnection: close\r\n{AUTHORIZED}"
    chunked = "Transfer-Encoding: chunked\r\n"
    for line, body, status in (
        ("Content-Length: 65\r\n", "", 413),
        ("Content-Length: 99999999999999\r\n", "", 413),
        ("Content-Length: -1\r\n", "", 400),
        ("Content-Length: ²\r\n", "", 400),
        ("Content-Length: 4\r\nContent-Length: 5\r\n", "", 400),
        ("Transfer-Encoding: gzip\r\n", "", 501),
        (chunked, "4\r\nabcd\r\n0\r\n\r\n", 200),
        (chunked, "41\r\n" + 65 * "a" + "\r\n0\r\n\r\n", 413),
    ):
        answer = send_raw(guarded, f"{head}{line}\r\n{body}".encode())
        assert f" {status} ".encode() in answer.partition(b"\r\n")[0], (line, answer)
    assert ask(guarded, "/post", "POST", b"a" * 64, headers=bearer(TOKEN)).status == 200
    # Who closes before all has come gets nothing of it done.
    with socket.create_connection(("127.0.0.1", guarded)) as client:
        client.sendall((head + "Content-Length: 9\r\n\r\nabc").encode())
        client.shutdown(socket.SHUT_WR)
        assert b" 200 " not in read_all(client)


def test_a_handler_that_fails_ends_its_own_request_only(
    local: int, caplog: pytest.LogCaptureFixture
) -> None:
    answer = ask(local, "/fails")
    assert (answer.status, answer.body) == (
        500,
        "this failed; the daemon's log says why\n",
    )
    assert "/fails cannot be answered" in caplog.text
    assert ask(local, "/open").status == 200


def test_a_head_without_end_is_refused(local: int) -> None:
    for parts, status in (
        ((b"GET /" + b"a" * HEAD_BYTES + b" HTTP/1.0\r\n\r\n",), b" 431 "),
        ((b"GET /open HTTP/1.0\r\nX: " + b"a" * HEAD_BYTES + b"\r\n\r\n",), b" 431 "),
        ((b"GET /open HTTP/1.0\r\n", b"X: y\r\n" * (HEAD_BYTES // 6 + 1)), b" 431 "),
        ((b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",), b" 400 "),
        ((b"get /open HTTP/1.0\r\n\r\n",), b" 400 "),
        ((b"GET\r\n\r\n",), b" 400 "),
    ):
        answer = send_raw(local, *parts)
        # One that sends more after the refusal may be reset before it has read it.
        assert status in answer or answer == b"", parts
        assert b" 200 " not in answer
    assert ask(local, "/open").status == 200


def test_a_client_that_is_silent_loses_its_connection(local: int) -> None:
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", local), HANG_S) as client:
        client.sendall(b"GET /open HTTP/1.0\r\nX-Slow: ")
        assert client.recv(1) == b""
    assert time.monotonic() - began > IDLE_S * 0.9


def test_clients_that_neither_send_nor_read_in_time_hold_up_no_other() -> None:
    """However many of them, as long as they are less than what may connect."""

    def answer(_: HttpRequest) -> HttpResponse:
        return HttpResponse(body=b"x" * 10_000_000)

    large = Route(path="/large", handler=answer, access=Access.ANYONE)
    with serving(large, *ROUTES) as server, contextlib.ExitStack() as clients:
        for number in range(MOST_CONNECTIONS - 20):
            address = ("127.0.0.1", server.port)
            client = clients.enter_context(socket.create_connection(address))
            if number % 20:
                client.sendall(b"GET /open HTTP/1.0\r\nX-Slow: ")
            else:
                client.sendall(b"GET /large HTTP/1.0\r\n\r\n")
        assert ask(server.port, "/open").status == 200


@contextlib.contextmanager
def trickling(
    clients: list[socket.socket], each: Callable[[socket.socket], object]
) -> Iterator[None]:
    """Do a little with each client, and often, so that none is ever silent."""
    over = threading.Event()

    def run() -> None:
        while not over.wait(0.2):
            for client in clients:
                with contextlib.suppress(OSError):
                    each(client)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for client in clients:
            client.close()


def test_clients_that_trickle_give_their_connections_back() -> None:
    """More of them than may connect."""
    with serving(*ROUTES, longest_s=1.0) as server:
        clients = []
        for _ in range(MOST_CONNECTIONS + 5):
            client = socket.create_connection(("127.0.0.1", server.port), HANG_S)
            client.sendall(b"GET /open HTTP/1.1\r\nX-Slow: ")
            clients.append(client)
        with trickling(clients, lambda client: client.send(b"a")):
            began = time.monotonic()
            assert ask(server.port, "/open").status == 200
            assert time.monotonic() - began < IDLE_S


def test_a_clock_that_is_set_back_keeps_no_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = SimpleNamespace(time=time.time)
    for module in waitress.server, waitress.channel:
        monkeypatch.setattr(module, "time", clock)
    with serving(*ROUTES, longest_s=0.5) as server:
        send_raw(server.port, b"GET /open HTTP/1.1\r\nX-Slow: ")
        clock.time = lambda: time.time() - 3600
        began = time.monotonic()
        send_raw(server.port, b"GET /open HTTP/1.1\r\nX-Slow: ")
        assert time.monotonic() - began < IDLE_S


def test_clients_that_read_a_trickle_give_threads_and_connections_back() -> None:
    """Each asks twice in one go, and the second answer waits for the first."""
    # More than waitress and the kernel keep for a client that does not read.
    answer = HttpResponse(body=b"x" * 40_000_000)
    large = Route(path="/large", handler=lambda _: answer, access=Access.ANYONE)
    with serving(large, *ROUTES, longest_s=0.5) as server:
        clients = []
        for _ in range(THREADS):
            client = socket.create_connection(("127.0.0.1", server.port), HANG_S)
            client.sendall(b"GET /large HTTP/1.1\r\n\r\n" * 2)
            clients.append(client)
        with trickling(clients, lambda client: client.recv(100)):
            assert ask(server.port, "/open").status == 200


def test_a_connection_that_is_kept_is_closed_between_answers() -> None:
    large = Route(path="/", handler=lambda _: LARGE, access=Access.ANYONE)
    with serving(large, longest_s=2.0) as server:
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=HANG_S)
        client.connect()
        client.auto_open = 0
        answered, began = 0, time.monotonic()

        def ask_on() -> None:
            nonlocal answered
            while time.monotonic() - began < 3 * IDLE_S:
                client.request("GET", "/")
                assert len(client.getresponse().read()) == len(LARGE.body)
                answered += 1

        with pytest.raises((OSError, http.client.NotConnected)):
            ask_on()
        client.close()
        assert answered > 3
        assert time.monotonic() - began > 2.0


def test_a_flood_of_clients_has_so_many_threads_and_is_answered() -> None:
    release, running = threading.Event(), set()

    def wait(_: HttpRequest) -> HttpResponse:
        running.add(threading.get_ident())
        release.wait()
        return text_response("ok")

    with serving(Route(path="/", handler=wait, access=Access.ANYONE)) as server:
        clients = []
        # More than may be connected at a time.
        for _ in range(MOST_CONNECTIONS + 50):
            client = socket.create_connection(("127.0.0.1", server.port), HANG_S)
            client.sendall(b"GET / HTTP/1.0\r\n\r\n")
            clients.append(client)
        wait_until(lambda: len(running) == THREADS, "the threads")
        release.set()
        answered = sum(b" 200 " in read_all(client) for client in clients)
        for client in clients:
            client.close()
    assert len(running) == THREADS
    assert answered == len(clients)


def test_an_answer_under_way_is_given_when_the_server_ends() -> None:
    begun, release = threading.Event(), threading.Event()

    def wait(_: HttpRequest) -> HttpResponse:
        begun.set()
        release.wait()
        return text_response("ok")

    with serving(Route(path="/", handler=wait, access=Access.ANYONE)) as server:
        client = socket.create_connection(("127.0.0.1", server.port), HANG_S)
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        assert begun.wait(HANG_S)
        threading.Timer(0.1, release.set).start()
    with client:
        assert b" 200 " in read_all(client)


def test_a_socket_that_a_daemon_left_is_replaced_and_nothing_else() -> None:
    with short_directory() as directory:
        path = directory / "s"
        left = socket.socket(socket.AF_UNIX)
        left.bind(str(path))
        left.close()
        with serving(*ROUTES, listen=f"unix:{path}"):
            assert b" 200 " in ask_socket(str(path), "/open")
            with pytest.raises(ConfigError, match="another process answers there"):
                HttpServer(parse_listen(f"unix:{path}"), Routes([]), None)
            assert b" 200 " in ask_socket(str(path), "/open")
        path.write_text("a file of somebody's")
        with pytest.raises(ConfigError, match="something else is there"):
            HttpServer(parse_listen(f"unix:{path}"), Routes([]), None)
        assert path.read_text() == "a file of somebody's"


def test_a_socket_that_another_made_meanwhile_is_left(tmp_path: Path) -> None:
    with short_directory() as directory:
        path = directory / "s"
        with serving(*ROUTES, listen=f"unix:{path}"):
            path.unlink()
            path.write_text("another's")
        assert path.read_text() == "another's"


def test_ipv6_is_listened_on() -> None:
    with (
        serving(*ROUTES, listen="[::1]:0") as server,
        socket.create_connection(("::1", server.port)) as client,
    ):
        client.sendall(b"GET /open HTTP/1.0\r\n\r\n")
        assert b" 200 " in read_all(client)


def test_two_routes_of_one_path_are_a_mistake() -> None:
    with pytest.raises(ValueError, match="two routes for GET /open"):
        Routes([ROUTES[0], ROUTES[0]])
