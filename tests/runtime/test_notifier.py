# SPDX-License-Identifier: MIT
"""Notices are told once, by real programs and posts, and hold up nobody."""

import contextlib
import json
import socket
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from burst.config import NotifySettings, Settings, parse
from burst.core.commands import enable_provider
from burst.daemon import Daemon
from burst.errors import BurstError, ConfigError, LeadError, LeadGone, StoreError
from burst.runtime.clock import ClockMark
from burst.runtime.notice_sender import CommandSink, NoticeSender, WebhookSink
from burst.runtime.notifier import Notifier
from burst.runtime.side_threads import SideThreads
from tests.builders import but, whole
from tests.fakes import FakeLead, MemoryStore, WatchedLead
from tests.sim import Sim
from tests.support.waiting import HANG_S, wait_until

TOKEN = "c" * 40


class Receiver(HTTPServer):
    """A webhook: what was posted, and which status it answers with."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Posted)
        self.posts: list[tuple[str, dict[str, str], Any]] = []
        self.statuses: list[int] = []
        """Of the next answers; then 200."""
        self.url = f"http://127.0.0.1:{self.server_address[1]}/hook/s3cret"


class _Posted(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Receiver)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        server.posts.append((self.path, dict(self.headers), json.loads(body)))
        status = server.statuses.pop(0) if server.statuses else 200
        self.send_response(status)
        if status == 302:
            self.send_header(
                "Location", f"http://localhost:{server.server_address[1]}/"
            )
        self.end_headers()

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    server = Receiver()
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


class Told(Sim):
    """A simulation that tells notices."""

    def __init__(self, notify: NotifySettings, **tables: object) -> None:
        self.notify = notify
        self.notifier: Notifier | None = None
        self.broken = False
        super().__init__(**tables)

    def boot(self):
        self.end()
        self.notifier = Notifier(lambda: None, 0.01)
        self.notifier.prepare(self.notify)()
        self.beside = SideThreads(notifier=self.notifier)
        super().boot()
        self.engine.reload_records(self.now, ClockMark("", 0.0))

    def end(self) -> None:
        if self.notifier is not None:
            self.notifier.close()

    def tick(self, ticks=1, seconds=1.0):
        for _ in range(ticks):
            if self.broken:
                self.provider.next_offers_error = ValueError("a bug")
            super().tick(1, seconds)

    def settle(self) -> None:
        """Tick until nothing is on its way."""
        assert self.notifier is not None
        for _ in range(3):
            self.tick()
            for sender in self.notifier._senders.values():
                wait_until(
                    lambda s=sender: s._ended.qsize() == len(s.pending),  # type: ignore[misc]
                    "what is on its way",
                )
        self.tick()


class PickyStore(MemoryStore):
    """Takes all records but which notices were told, while it is picky."""

    picky = False

    def write(self, changes):
        if self.picky and "notice/told" in changes:
            raise StoreError("no space left", "make room")
        super().write(changes)


def stop_working(sim: Told) -> None:
    """Have the provider's breaker open, and what is told of it be told."""
    sim.tick(3)
    sim.broken = True
    for _ in range(3):
        sim.tick(1, 70.0)
        sim.tick(1)
    sim.settle()


@pytest.fixture
def sim(receiver: Receiver, tmp_path: Path) -> Iterator[Told]:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    made = Told(NotifySettings(webhook=receiver.url, token_file=str(token)))
    yield made
    made.end()


def ids(receiver: Receiver) -> list[str]:
    return [body["id"] for _, _, body in receiver.posts]


def test_a_notice_is_told_once_also_over_a_restart(
    sim: Told, receiver: Receiver
) -> None:
    sim.tick(3)
    assert receiver.posts == []
    stop_working(sim)
    assert ids(receiver) == ["breaker/local"]
    (path, headers, body) = receiver.posts[0]
    assert path == "/hook/s3cret"
    assert headers["Authorization"] == f"Bearer {TOKEN}"
    assert headers["Content-Type"] == "application/json"
    assert body["kind"] == "breaker"
    assert body["severity"] == "warning"
    assert body["text"] == f"{body['what']}; {body['advice']}"
    assert body["owner"] == sim.lead.known.owner
    sim.boot()
    sim.settle()
    assert ids(receiver) == ["breaker/local"]
    assert sim.records.unreadable == {}


def test_what_was_over_and_comes_back_is_told_again(
    sim: Told, receiver: Receiver
) -> None:
    stop_working(sim)
    sim.broken = False
    sim.tick(8, 70.0)
    assert not sim.records.health
    stop_working(sim)
    assert ids(receiver) == ["breaker/local", "breaker/local"]


def test_what_could_not_be_told_is_tried_again_and_is_in_the_status(
    sim: Told, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "burst")
    receiver.statuses = [500] * 4
    stop_working(sim)
    sim.tick()
    assert len(receiver.posts) == 4
    why = "notify.webhook: 127.0.0.1: status 500"
    assert sim.engine.snapshot.untold == {"webhook": why}
    assert f"notice breaker/local could not be sent: {why}" in caplog.text
    assert TOKEN not in caplog.text
    assert "s3cret" not in caplog.text
    sim.tick(1, 601.0)
    sim.settle()
    assert len(receiver.posts) == 5
    assert sim.engine.snapshot.untold == {}
    assert "notices are sent again by notify.webhook" in caplog.text


def test_what_could_not_be_told_and_is_over_is_no_trouble_any_more(
    sim: Told, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "burst")
    receiver.statuses = [500] * 4
    stop_working(sim)
    sim.tick()
    assert sim.notifier is not None
    assert "status 500" in sim.notifier.troubles["webhook"]
    sim.broken = False
    sim.engine.post(lambda tx: enable_provider(tx, "local"))
    sim.tick(3)
    assert sim.notifier.troubles == {}
    assert caplog.text.count("what notify.webhook could not report is over") == 1


def test_who_does_not_answer_holds_up_no_tick() -> None:
    answer = threading.Event()

    class Silent:
        def send(self, body: bytes) -> None:
            answer.wait()

    sender = NoticeSender(Silent(), lambda: None)
    sim = Told(NotifySettings())
    assert sim.notifier is not None
    sim.notifier._senders["silent"] = sender
    sim.tick(3)
    sim.broken = True
    for _ in range(3):
        sim.tick(1, 70.0)
        sim.tick(1)
    # A tick that waited would do so for ever.
    sim.tick(100)
    assert sender.pending == {"breaker/local"}
    answer.set()
    sim.end()


def test_a_store_that_does_not_take_it_is_told_and_it_is_stored_later(
    receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    store = PickyStore()
    sim = Told(NotifySettings(webhook=receiver.url), lead=FakeLead(disk=store))
    store.picky = True
    stop_working(sim)
    assert "cannot store which notices were sent" in caplog.text
    assert "notice/told" not in store.records
    store.picky = False
    sim.tick()
    assert ids(receiver) == ["breaker/local"]
    assert "breaker/local" in store.records["notice/told"]
    sim.end()


def test_a_record_that_cannot_be_read_begins_anew(
    sim: Told, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    sim.lead.disk.records["notice/told"] = "{"
    sim.boot()
    sim.tick(3)
    assert "cannot read which notices were sent" in caplog.text
    stop_working(sim)
    assert ids(receiver) == ["breaker/local"]


def test_thousands_of_conditions_are_told_a_few_at_a_time(receiver: Receiver) -> None:
    sim = Told(NotifySettings(webhook=receiver.url))
    sim.lead.submit(whole(3))
    sim.until(lambda: bool(sim.bursts))
    names = [f"burst-0-{number:06x}" for number in range(60)]
    records = sim.records
    known = but(sim.burst, quarantined="why")
    unknown = {n: but(known, lease=but(known.lease, id=n)) for n in names}
    assert sim.notifier is not None
    found = but(records, bursts=unknown)
    many = but(sim.engine.snapshot, records=found)
    notifier = sim.notifier

    def all_came() -> bool:
        notifier.tick(many)
        (sender,) = notifier._senders.values()
        assert len(sender.pending) <= 20
        return len(receiver.posts) >= 60

    wait_until(all_came, lambda: f"60 posts: {len(receiver.posts)}")
    sim.end()
    assert sorted(ids(receiver)) == [f"quarantine/{name}" for name in names]


def test_a_program_gets_the_notice_on_its_standard_input(tmp_path: Path) -> None:
    out = tmp_path / "out"
    CommandSink(("sh", "-c", f"cat > {out}"), HANG_S).send(b'{"id": "x"}\n')
    assert json.loads(out.read_text()) == {"id": "x"}
    with pytest.raises(BurstError, match=r"notify\.command: .*failed: no pager"):
        CommandSink(("sh", "-c", "echo no pager >&2; exit 3"), HANG_S).send(b"{}")
    with pytest.raises(BurstError, match=r"notify\.command: /none cannot be run"):
        CommandSink(("/none",), HANG_S).send(b"{}")
    with pytest.raises(BurstError, match=r"did not end within 0\.2 s"):
        CommandSink(("sh", "-c", "sleep 1000"), 0.2).send(b"{}")


def test_a_webhook_that_fails_is_told_by_its_host_only(receiver: Receiver) -> None:
    sink = WebhookSink(receiver.url, TOKEN, HANG_S)
    for status in (302, 401, 503):
        receiver.statuses = [status]
        with pytest.raises(BurstError) as raised:
            sink.send(b"{}")
        assert str(raised.value) == f"notify.webhook: 127.0.0.1: status {status}"
    # A redirect is not followed: the token would go elsewhere.
    assert len(receiver.posts) == 3
    gone = WebhookSink("http://127.0.0.1:1/s3cret", TOKEN, HANG_S)
    with pytest.raises(BurstError, match="Connection refused") as raised:
        gone.send(b"{}")
    assert "s3cret" not in str(raised.value)


def drip(listener: socket.socket, start: bytes) -> None:
    """Answer one client with a byte now and then, without end."""
    with contextlib.suppress(OSError):
        client, _ = listener.accept()
        with client:
            client.sendall(start)
            while True:
                client.sendall(b"2")
                time.sleep(0.05)


@pytest.mark.parametrize(
    ("scheme", "start"),
    # With TLS in the middle of the handshake.
    [("http", b"HTTP/1.1 "), ("https", b"\x16\x03\x03\x3f\xff")],
)
def test_a_webhook_that_never_ends_its_answer_is_given_up_in_time(
    scheme: str, start: bytes
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=drip, args=(listener, start), daemon=True)
        thread.start()
        port = listener.getsockname()[1]
        with pytest.raises(BurstError, match=r"127\.0\.0\.1: timed out$"):
            WebhookSink(f"{scheme}://127.0.0.1:{port}/", "", 0.5).send(b"{}")
        thread.join(HANG_S)
        assert not thread.is_alive()


def test_what_is_for_this_host_goes_through_no_proxy(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    WebhookSink(receiver.url, TOKEN, HANG_S).send(b'{"id": 1}')
    assert [path for path, _, _ in receiver.posts] == ["/hook/s3cret"]


class Stuck:
    """A sink that raises what no sink should."""

    def send(self, _: bytes) -> None:
        raise RuntimeError("s3cret")


def test_a_sink_with_a_bug_ends_no_thread() -> None:
    woken: list[bool] = []
    sender = NoticeSender(Stuck(), lambda: woken.append(True), 0.001)
    for name in ("a", "b"):
        sender.send(name, b"{}")
    wait_until(lambda: len(woken) == 2, "two notices")
    assert [sent.why for sent in sender.collect()] == ["notify: RuntimeError"] * 2
    assert not sender.pending
    sender.close(10.0)
    assert not sender._thread.is_alive()


def test_settings_that_name_other_files_are_read(
    receiver: Receiver, tmp_path: Path
) -> None:
    notifier = Notifier(lambda: None, 0.01)
    path = tmp_path / "url"
    path.write_text(f"{receiver.url}\n")
    path.chmod(0o644)
    with pytest.raises(ConfigError, match=r"notify\.webhook: .*others may read"):
        notifier.prepare(NotifySettings(webhook=str(path)))
    path.chmod(0o600)
    notifier.prepare(NotifySettings(webhook=str(path)))()
    (sender,) = notifier._senders.values()
    notifier.prepare(NotifySettings(webhook=str(path)))()
    assert notifier._senders["webhook"] is sender
    notifier.lead_lost("gone", ["burst-0-1ab"], 1.0)
    notifier.lead_lost("gone again", [], 2.0)
    wait_until(lambda: ids(receiver) == ["lead-lost"], "the notice")
    notifier.lead_back()
    notifier.lead_lost("gone", [], 3.0)
    wait_until(lambda: len(receiver.posts) == 2, "the second")
    path.write_text("ftp://elsewhere.org/s3cret")
    with pytest.raises(ConfigError, match="is not a URL of http") as raised:
        notifier.prepare(NotifySettings(webhook=str(path)))
    assert "s3cret" not in str(raised.value)
    notifier.prepare(NotifySettings())()
    assert not notifier._senders
    notifier.close()


class GoneLead(WatchedLead):
    """Is lost as soon as it is read."""

    def observe(self):
        raise LeadGone("the socket is closed")


def test_a_daemon_tells_that_it_lost_its_lead(receiver: Receiver) -> None:
    tables = {"notify": {"webhook": receiver.url}}
    settings: Settings = parse(tables, "x")
    back = WatchedLead()
    leads: Iterator[FakeLead] = iter([GoneLead(), back])
    daemon = Daemon(lambda: settings, None, lambda _: next(leads))
    back.at_observe = daemon.stop
    daemon.run()
    assert ids(receiver) == ["lead-lost"]
    told = receiver.posts[0][2]
    assert "the socket is closed" in told["text"]
    assert told["advice"] == "look at the lead's broker"


def test_a_lead_that_is_shut_down_without_bursts_is_not_told(
    receiver: Receiver,
) -> None:
    settings: Settings = parse({"notify": {"webhook": receiver.url}}, "x")
    going = GoneLead()
    going.shuts_down = lambda: True  # type: ignore[attr-defined]
    with pytest.raises(LeadError, match="the lead was shut down"):
        Daemon(lambda: settings, None, lambda _: going).run()
    assert not receiver.posts
