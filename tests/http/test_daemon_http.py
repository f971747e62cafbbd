# SPDX-License-Identifier: MIT
"""What a daemon answers over HTTP while it begins, ticks, loses its lead and ends."""

import contextlib
import json
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families as parse_text

from burst.config import Settings, parse
from burst.daemon import Daemon
from burst.errors import ConfigError, LeadGone, ServiceTaken
from burst.http.server import IDLE_S, MOST_CONNECTIONS
from burst.lead import Lead
from burst.runtime.daemon_state import DaemonState, Served
from burst.runtime.snapshot import Snapshot
from burst.runtime.tally import Tally
from tests.embedded_instance import embedded_instance
from tests.fakes import FakeLead, WatchedLead
from tests.http.clients import Answer, ask, bearer
from tests.support.ports import free_port
from tests.support.waiting import HANG_S, wait_until

TOKEN = "a" * 40
QUICK = {"cadence": "0.1s"}
TICKS = "flux_burst_tick_duration_seconds_count"


def number(text: str, name: str) -> float:
    """Return the value of a metric without labels."""
    for family in parse_text(text):
        for sample in family.samples:
            if sample.name == name and not sample.labels:
                return float(sample.value)
    raise AssertionError(f"{name} is not there")


@contextmanager
def running(daemon: Daemon) -> Iterator[list[BaseException]]:
    """Run a daemon on a thread; it is stopped after the block."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            daemon.run()
        except BaseException as error:  # noqa: BLE001 - shown by the test
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield raised
    finally:
        daemon.stop()
        thread.join(HANG_S)
        assert not thread.is_alive()


def settings(port: int, token: Path, **tables: object) -> Settings:
    token.write_text(TOKEN)
    token.chmod(0o600)
    http = {"listen": f"127.0.0.1:{port}", "token_file": str(token)}
    return parse({"http": http, **tables}, "x.toml")


def is_up(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def own(port: int, path: str) -> Answer:
    return ask(port, path, headers=bearer(TOKEN))


def test_a_daemon_of_a_real_lead_answers_and_closes_when_it_stops(
    tmp_path: Path,
) -> None:
    port = free_port()
    with embedded_instance() as instance:
        found = settings(port, tmp_path / "t", lead={"uri": instance.uri})
        with running(Daemon(lambda: found, None)) as raised:
            wait_until(lambda: is_up(port), "the port")
            wait_until(lambda: ask(port, "/readyz").status == 200, "readiness")
            assert ask(port, "/healthz").body == "ok\n"
            assert ask(port, "/status").status == 401
            shown = json.loads(own(port, "/status").body)
            with closing(instance.lead()) as lead:
                told = lead.call("status", {})
            assert shown.keys() == told.keys()
            assert shown["lead"] == told["lead"]
            assert shown["daemon"] == told["daemon"]
            assert shown["slots"] == told["slots"]
            assert ask(port, "/").status == 401
            page = own(port, "/")
            assert page.headers["Content-Type"] == "text/html; charset=utf-8"
            assert told["lead"]["uri"] in page.body
            assert 'http-equiv="refresh"' in page.body
            assert "since 2026-01-01" in own(port, "/?since=2026-01-01").body
            for bad in ("since=2026-02-30", "since=%3Cscript%3E"):
                refused = own(port, f"/?{bad}")
                assert refused.status == 400
                assert refused.headers["Content-Type"].startswith("text/plain")
                assert "such as 2026-11-01" in refused.body
            text = own(port, "/metrics").body
            assert number(text, "flux_burst_lead_up") == 1
            assert number(text, TICKS) >= 1
            assert TOKEN not in text + json.dumps(shown)
        assert not raised
        assert not is_up(port)


class AskedWhenItServes(logging.Handler):
    """Asks a daemon whether it is ready at the moment at which it logs that it serves.

    Then the daemon is told to stop.
    """

    def __init__(self, port: int, daemon: Daemon) -> None:
        super().__init__()
        self._port, self._daemon = port, daemon
        self.told: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if " serves " in record.getMessage():
            self.told.append(ask(self._port, "/readyz").body)
            self._daemon.stop()


def test_a_daemon_that_says_that_it_serves_answers(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    port = free_port()
    found = settings(port, tmp_path / "t")
    daemon = Daemon(lambda: found, None, lambda _: FakeLead())
    asked, logger = AskedWhenItServes(port, daemon), logging.getLogger("burst")
    logger.addHandler(asked)
    try:
        with caplog.at_level(logging.INFO, "burst"):
            daemon.run()
    finally:
        logger.removeHandler(asked)
    assert asked.told == ["the lead cannot be read: it has not been read yet\n"]


class LeavingLead(FakeLead):
    """A lead that goes away when the test says so."""

    leaves = False

    def observe(self):
        if self.leaves:
            raise LeadGone("the connection was lost")
        return super().observe()


def test_while_the_lead_is_away_the_server_stays_and_is_not_ready(
    tmp_path: Path,
) -> None:
    port, first, there = free_port(), LeavingLead(), threading.Event()
    found = settings(port, tmp_path / "t", daemon=QUICK)
    leads = iter([first])

    def connector(_: str) -> Lead:
        lead = next(leads, None)
        if lead is None:
            if not there.is_set():
                raise LeadGone("nobody is there")
            return FakeLead()
        return lead

    with running(Daemon(lambda: found, None, connector)) as raised:
        wait_until(lambda: is_up(port) and ask(port, "/readyz").status == 200, "ready")
        ticks = number(
            own(port, "/metrics").body, "flux_burst_tick_duration_seconds_count"
        )
        first.leaves = True
        first.wake()
        wait_until(lambda: ask(port, "/readyz").status == 503, "503")
        away = ask(port, "/readyz")
        assert away.body == "the lead was lost: the connection was lost\n"
        assert ask(port, "/healthz").status == 200
        assert own(port, "/status").status == 503
        text = own(port, "/metrics").body
        assert number(text, "flux_burst_lead_up") == 0
        assert "flux_burst_slots" not in text
        there.set()
        wait_until(lambda: ask(port, "/readyz").status == 200, "ready again")
        # What was counted goes on: it is still the same process.
        # Its tick is counted once it has ended.
        wait_until(lambda: number(own(port, "/metrics").body, TICKS) > ticks, "a tick")
    assert not raised


def test_a_port_that_is_taken_keeps_the_daemon_from_its_start(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        found = settings(other.getsockname()[1], tmp_path / "t")
        lead = FakeLead()
        daemon = Daemon(lambda: found, Path("x.toml"), lambda _: lead)
        with pytest.raises(ConfigError, match=r"x\.toml: http\.listen: .*in use"):
            daemon.run()
    assert lead.closed
    assert not lead.disk.records


class TakenLead(FakeLead):
    """Another daemon serves it, and has the port."""

    def serve(self, handler, holder, admit=None):
        raise ServiceTaken("another daemon serves this lead: pid 1")


def test_a_second_daemon_is_told_of_the_first_not_of_its_port(tmp_path: Path) -> None:
    lead = TakenLead()
    with socket.create_server(("127.0.0.1", 0)) as other:
        found = settings(other.getsockname()[1], tmp_path / "t")
        daemon = Daemon(lambda: found, Path("x.toml"), lambda _: lead)
        with pytest.raises(ServiceTaken, match="pid 1"):
            daemon.run()
    assert lead.closed


def test_where_no_lead_can_be_asked_a_port_that_is_taken_is_told(
    tmp_path: Path,
) -> None:
    def connect(_: str) -> Lead:
        raise LeadGone("nobody there")

    with socket.create_server(("127.0.0.1", 0)) as other:
        found = settings(other.getsockname()[1], tmp_path / "t")
        with pytest.raises(ConfigError, match="in use"):
            Daemon(lambda: found, None, connect).run()


def test_a_daemon_that_does_not_go_on_is_told_of() -> None:
    now = [100.0]
    state = DaemonState(Tally(), lambda: now[0])
    state.beat(10.0)
    now[0] += 310
    assert state.why_stuck() == ""
    now[0] += 1
    assert state.why_stuck() == "the daemon has made no progress for 5.18m"
    state.beat(10.0)
    assert state.why_stuck() == ""
    assert state.why_not_ready() == "no lead was reached yet"
    assert state.served is None
    state.lose("it is gone")
    assert state.why_not_ready() == "it is gone"


def test_where_no_lead_is_served_it_is_told_why_at_each_moment() -> None:
    class Watched(DaemonState):
        """Asks after each change of a field, as another thread may."""

        asks = False

        def __setattr__(self, name: str, value: object) -> None:
            super().__setattr__(name, value)
            if self.asks and self.served is None:
                told.append(self.why_lead_away())

    def snapshot() -> Snapshot:
        raise AssertionError("nobody reads it")

    told: list[str] = []
    state = Watched(Tally())
    state.serve(Served(snapshot, {}, lambda _: {}))
    state.asks = True
    state.lose("it is gone")
    assert set(told) == {"it is gone"}


def test_clients_that_never_end_hold_up_no_tick(tmp_path: Path) -> None:
    port, lead, ticks = free_port(), WatchedLead(), []
    quick = {"cadence": "0.05s"}
    found = settings(port, tmp_path / "t", daemon=quick)
    lead.at_observe = lambda: ticks.append(time.monotonic())
    # Were each held up until a client's time is over, the wait would be too short.
    many = 40
    assert many * IDLE_S > 3 * 60
    with running(Daemon(lambda: found, None, lambda _: lead)) as raised:
        wait_until(lambda: is_up(port), "the port")
        with endless_clients(port) as fill:
            fill(2 * MOST_CONNECTIONS)
            ticks.clear()

            def held_up_by_none() -> bool:
                fill(MOST_CONNECTIONS)
                return len(ticks) > many

            wait_until(held_up_by_none, lambda: f"{many} ticks: {ticks}")
    assert not raised


@contextmanager
def endless_clients(port: int) -> Iterator[Callable[[int], None]]:
    """Yield what sees to so many connections with a request that does not end.

    Others take the place of those that the server has closed.
    """
    clients: list[socket.socket] = []

    def fill(number: int) -> None:
        for client in [client for client in clients if not is_open(client)]:
            client.close()
            clients.remove(client)
        while len(clients) < number:
            client = socket.create_connection(("127.0.0.1", port))
            clients.append(client)
            with contextlib.suppress(OSError):
                client.sendall(b"GET /metrics HTTP/1.0\r\nX-Never-Ends: ")
            client.setblocking(False)

    try:
        yield fill
    finally:
        for client in clients:
            client.close()


def is_open(client: socket.socket) -> bool:
    """Tell whether the server has neither answered nor closed it."""
    try:
        client.recv(1)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False
