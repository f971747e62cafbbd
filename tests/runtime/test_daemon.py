# SPDX-License-Identifier: MIT
"""How a daemon begins, begins again, reloads and stops."""

import logging
import os
import signal
import socket
import threading
from collections.abc import Callable
from pathlib import Path
from socket import AF_UNIX, SOCK_DGRAM

import pytest

from burst import log
from burst.config import Settings, parse
from burst.config.file import LOOKED_FOR
from burst.core.plan.slots import DRAIN_TAG
from burst.daemon import Daemon
from burst.errors import ConfigError, LeadError, LeadGone, ServiceTaken, Unreadable
from burst.lead import no_known_jobs
from burst.model.burst import Burst
from burst.model.lead import JobState
from burst.model.record import encode_record
from burst.runtime.clock import ClockMark
from burst.wakeup import on_signals
from tests.builders import whole
from tests.fakes import FakeLead, WatchedLead
from tests.lifecycles import WHOLE_WAY, run
from tests.support.fluxlead import short_directory
from tests.support.waiting import wait_until


class LeadAtListen(FakeLead):
    """Calls `at_listen` when a daemon has begun."""

    at_listen: Callable[[], None]

    def listen(self, wake, known=no_known_jobs):
        self.at_listen()


class RaisingLead(FakeLead):
    """Raises an error where one of its methods is called."""

    def __init__(self, method: str, error: Exception) -> None:
        super().__init__()

        def fail(*_: object) -> None:
            raise error

        setattr(self, method, fail)


def starting_lead() -> RaisingLead:
    """Return one whose broker takes connections, and has no resources yet."""
    return RaisingLead("identity", Unreadable("resource.status: nobody serves it"))


def going_lead() -> RaisingLead:
    """Return one that is gone as soon as it is looked at."""
    return RaisingLead("observe", LeadGone("the connection is lost"))


def taken_lead() -> RaisingLead:
    """Return one that another daemon serves."""
    return RaisingLead("serve", ServiceTaken("another daemon serves this lead"))


def daemon_of(leads: list[FakeLead], reconnect: float = 60.0) -> Daemon:
    """Return a daemon that finds one lead after the other, and the last for ever."""
    left = iter(leads)

    def connector(_: str) -> FakeLead:
        return next(left, leads[-1])

    settings = Settings()
    return Daemon(lambda: settings, None, connector, reconnect_limit=reconnect)


@pytest.mark.parametrize("abstract", [False, True])
def test_systemd_is_told_that_it_serves_and_once(
    monkeypatch: pytest.MonkeyPatch, *, abstract: bool
) -> None:
    starting, up = starting_lead(), WatchedLead()
    daemon = daemon_of([starting, going_lead(), up])
    up.at_observe = daemon.stop
    with short_directory() as place, socket.socket(AF_UNIX, SOCK_DGRAM) as manager:
        path = f"{place}/notify"
        manager.bind(f"\0{path}" if abstract else path)
        monkeypatch.setenv("NOTIFY_SOCKET", f"@{path}" if abstract else path)
        manager.setblocking(False)
        daemon.run()
        assert manager.recv(100) == b"READY=1"
        with pytest.raises(BlockingIOError):
            manager.recv(100)
    assert starting.closed
    assert up.closed


def test_what_systemd_cannot_be_told_is_logged_and_the_daemon_serves(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    up = WatchedLead()
    daemon = daemon_of([up])
    up.at_observe = daemon.stop
    monkeypatch.setenv("NOTIFY_SOCKET", "/nowhere/notify")
    daemon.run()
    assert "cannot tell systemd that the daemon is ready" in caplog.text


def test_a_lead_that_stays_away_is_given_up_with_what_was_wrong_with_it() -> None:
    daemon = daemon_of([starting_lead()], reconnect=0.0)
    with pytest.raises(LeadError, match=r"did not come back within 0s: resource\.st"):
        daemon.run()


def test_a_lead_that_is_not_there_at_first_is_not_waited_for() -> None:
    lead = RaisingLead("identity", LeadGone("cannot connect"))
    with pytest.raises(LeadGone):
        daemon_of([lead]).run()
    assert lead.closed


def test_a_lead_that_was_shut_down_is_not_waited_for() -> None:
    again, going = LeadAtListen(), going_lead()
    again.at_listen = lambda: pytest.fail("it was looked for")
    going.shuts_down = lambda: True  # type: ignore[attr-defined]
    with pytest.raises(LeadError, match=r"shut down; start the daemon with the lead"):
        daemon_of([going, again]).run()


def test_a_lead_that_another_daemon_has_is_left_to_it() -> None:
    taken = taken_lead()
    with pytest.raises(ServiceTaken):
        daemon_of([going_lead(), taken]).run()
    assert taken.closed


def test_a_daemon_that_is_told_to_stop_looks_no_longer() -> None:
    # Of what it would have to wait for nothing is even looked at.
    lead = LeadAtListen()
    lead.at_listen = lambda: pytest.fail("it began")
    daemon = daemon_of([lead])
    daemon.stop()
    daemon.run()


@pytest.fixture
def said(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """What the daemon has logged since `on` made it."""
    return lambda: capsys.readouterr().err


def on(its_lead: FakeLead, path: str | None = None, **tables: object) -> Daemon:
    log.start("text")
    settings = parse(tables, "x.toml")
    return Daemon(lambda: settings, Path(path) if path else None, lambda _: its_lead)


def test_a_daemon_without_providers_says_so_once_it_is_the_leads_daemon(
    said: Callable[[], str],
) -> None:
    with pytest.raises(ServiceTaken):
        on(taken_lead()).run()
    assert "provider" not in said()
    for path, advice in (
        (None, f"no settings file was read ({LOOKED_FOR}); name one with -c"),
        ("/x/burst.toml", "no burst can be made: enable one in /x/burst.toml"),
    ):
        lead = LeadAtListen()
        daemon = on(lead, path)
        lead.at_listen = daemon.stop
        daemon.run()
        assert advice in said()


@pytest.mark.parametrize(
    ("path", "told"),
    [
        (None, "there is no settings file to reload"),
        ("site.toml", "reloaded site.toml; changed: nothing"),
    ],
)
def test_settings_are_read_again_from_where_they_were(
    said: Callable[[], str], path: str | None, told: str
) -> None:
    lead = WatchedLead()
    daemon = on(lead, path)

    def stop_after_it() -> None:
        if daemon._reloads.time_left() is None:
            daemon.stop()

    lead.at_observe = stop_after_it
    daemon.reload()
    daemon.run()
    assert told in said()


def test_a_key_that_does_not_fit_the_lead_is_told_with_its_file(
    said: Callable[[], str],
) -> None:
    daemon = on(FakeLead(), "site.toml", lead={"slots": ["x-[0-1]"]})
    told = r"site\.toml: lead\.slots: x-\[0-1\] is not in the lead's hosts; ranks are"
    with pytest.raises(ConfigError, match=told):
        daemon.run()


def test_a_daemon_that_cannot_serve_the_lead_again_tells_how_to_delete_bursts(
    said: Callable[[], str],
) -> None:
    lead, burst = lead_with_a_burst()
    lead.at_observe = going_lead().observe
    wrong = RaisingLead("identity", ConfigError("the lead has no such queue"))
    leads = iter([lead, wrong])
    tables = {"local": {"type": "local"}}
    settings = parse({"daemon": {"on_stop": "reap"}, "providers": tables}, "x.toml")
    log.start("text")
    daemon = Daemon(lambda: settings, Path("/x.toml"), lambda _: next(leads))
    with pytest.raises(ConfigError, match="no such queue"):
        daemon.run()
    told = said()
    assert f"{burst.id} of provider local: to delete what is left" in told
    assert "burst gc --provider local --owner " in told
    assert "deleting all bursts" not in told


def test_a_lead_that_is_lost_after_a_step_of_the_clock_leaves_no_burst_untold(
    said: Callable[[], str],
) -> None:
    lead, burst = lead_with_a_burst()
    leads = [RaisingLead("identity", LeadGone("nobody there")), lead]
    tables = {"local": {"type": "local"}}
    settings = parse({"providers": tables}, "x.toml")

    def step() -> None:
        clock = lead.wake.__self__.clock
        clock.mark = ClockMark(clock.mark.boot, clock.mark.offset - 7200.0)
        lead.wake()

    lead.at_observe = step
    log.start("text")
    daemon = Daemon(lambda: settings, None, lambda _: leads.pop(), reconnect_limit=0.0)
    with pytest.raises(LeadError, match="did not come back"):
        daemon.run()
    told = said()
    assert "the system clock was set by 2h" in told
    assert f"{burst.id} of provider local: to delete what is left" in told


class AtCommands(logging.Handler):
    """Calls a function when the log says how to delete bursts."""

    def __init__(self, act: Callable[[], None]) -> None:
        super().__init__()
        self._act = act

    def emit(self, record: logging.LogRecord) -> None:
        if "to delete what is left" in record.getMessage():
            self._act()


def test_the_deletion_of_what_a_lost_lead_left_ends_at_a_second_signal_of_three(
    said: Callable[[], str], tmp_path: Path
) -> None:
    lead, burst = lead_with_a_burst()
    lead.at_observe = going_lead().observe
    leads = [RaisingLead("identity", LeadGone("nobody there")), lead]
    begun, over = tmp_path / "begun", tmp_path / "over"
    # It ends with this process, too.
    until = f"test -e {over} || ! kill -0 $PPID"
    hangs = f"touch {begun}; until {until}; do sleep 0.1; done"
    table = {
        "type": "command",
        "program": ["sh", "-c", hangs],
        "dir": str(tmp_path / "files"),
        "cores": 1,
        "max_nodes": 1,
    }
    daemon = Daemon(
        lambda: parse(
            {"daemon": {"on_stop": "reap"}, "providers": {"local": table}}, "x.toml"
        ),
        None,
        lambda _: leads.pop(),
        reconnect_limit=0.0,
    )
    numbers = (signal.SIGUSR1, signal.SIGUSR2)
    before = [signal.getsignal(number) for number in numbers]

    def stop_twice() -> None:
        wait_until(begun.exists, "the provider to be called")
        os.kill(os.getpid(), numbers[0])
        wait_until(lambda: daemon._stopping, "the first signal to be taken")
        os.kill(os.getpid(), numbers[1])

    on_signals(daemon.stop, *numbers)
    log.start("text")
    third = AtCommands(daemon.stop)
    logging.getLogger("burst").addHandler(third)
    person = threading.Thread(target=stop_twice)
    person.start()
    try:
        with pytest.raises(LeadError, match="did not come back"):
            daemon.run()
    finally:
        person.join()
        over.touch()
        logging.getLogger("burst").removeHandler(third)
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
    told = said()
    assert "deleting all bursts, for at most 10m" in told
    assert f"{burst.id} of provider local: to delete what is left" in told


def test_two_signals_before_the_lead_is_lost_begin_no_deletion(
    said: Callable[[], str],
) -> None:
    lead, burst = lead_with_a_burst()
    tables = {"local": {"type": "local"}}
    daemon = on(lead, daemon={"on_stop": "reap"}, providers=tables)

    def stop_again() -> None:
        daemon.stop()
        raise LeadGone("the connection is lost")

    def stop() -> None:
        lead.at_observe = stop_again
        daemon.stop()

    lead.at_observe = stop
    daemon.run()
    told = said()
    assert told.count("deleting all bursts") == 1
    assert f"{burst.id} of provider local: to delete what is left" in told


def lead_with_a_burst() -> tuple[WatchedLead, Burst]:
    lead, burst = WatchedLead(), run(*WHOLE_WAY[:4])
    lead.disk.records[f"burst/{burst.id}"] = encode_record(burst)
    return lead, burst


def test_what_is_not_gone_by_the_reap_deadline_is_left(said: Callable[[], str]) -> None:
    lead, burst = lead_with_a_burst()
    daemon = on(lead, daemon={"on_stop": "reap"}, deadlines={"reap": "0s"})

    def stop_once() -> None:
        lead.at_observe = daemon._wakeup.wake
        daemon.stop()

    lead.at_observe = stop_once
    daemon.run()
    told = said()
    assert "provider local has live bursts but is not enabled" in told
    assert "deleting all bursts, for at most 0s" in told
    assert f"{burst.id} of provider local is not down: it is in state drain" in told
    assert "run-burst --down --provider local --name burst-0" in told
    assert "stopped; live bursts: 1, held jobs: 0" in told


def stopping_at(
    lead: WatchedLead, daemon: Daemon, look: Callable[[int], object] = int
) -> list[int]:
    """Stop the daemon at its first look, and for good at the ninth; return the looks.

    `look` is called with the number of each.
    """
    looks: list[int] = []

    def stop_twice() -> None:
        looks.append(len(looks) + 1)
        daemon._wakeup.wake()
        if looks[-1] in (1, 9):
            daemon.stop()
        look(looks[-1])

    lead.at_observe = stop_twice
    return looks


def test_a_daemon_that_takes_all_down_begins_nothing_for_jobs_that_wait() -> None:
    lead, _ = lead_with_a_burst()
    waits = lead.submit(whole(9))
    daemon = on(lead, daemon={"on_stop": "reap"})
    stopping_at(lead, daemon)
    daemon.run()
    assert "the daemon stops" in str(lead.memos[waits])


def test_ranks_of_a_burst_that_is_gone_are_undrained_before_the_end() -> None:
    lead, gone = WatchedLead(), run(*WHOLE_WAY[:-1])
    assert gone.drained
    lead.disk.records[f"burst/{gone.id}"] = encode_record(gone)
    lead.drained = dict.fromkeys(gone.drained, f"{DRAIN_TAG}{gone.id} is over")
    daemon = on(lead, daemon={"on_stop": "reap"})

    def silent_at_first(look: int) -> None:
        lead.unreadable = look < 4

    looks = stopping_at(lead, daemon, silent_at_first)
    daemon.run()
    assert not lead.drained
    assert len(looks) < 9


@pytest.mark.parametrize(("busy", "state"), [(False, "reap"), (True, "drain")])
def test_a_store_that_refuses_for_a_moment_puts_nothing_off_for_good(
    said: Callable[[], str], busy: bool, state: str
) -> None:
    lead, burst = lead_with_a_burst()
    if busy:
        ranks = frozenset(burst.lease.ranks)
        lead.online |= ranks
        lead.change(lead.submit(whole(2)), state=JobState.RUN, ranks=ranks)
    daemon = on(lead, daemon={"on_stop": "reap"}, deadlines={"reap": "1h"})

    def refuse_at_first(looks: int) -> None:
        lead.disk.full = 1 < looks < 4

    stopping_at(lead, daemon, refuse_at_first)
    daemon.run()
    told = f"{burst.id} of provider local is not down: it is in state {state}"
    assert told in said()


def test_what_is_left_is_told_if_the_lead_stops_at_the_same_time(
    said: Callable[[], str],
) -> None:
    lead, burst = lead_with_a_burst()
    daemon = on(lead, daemon={"on_stop": "reap"})

    def stop_together() -> None:
        def be_gone() -> None:
            raise LeadGone("connection lost")

        lead.at_observe = be_gone
        daemon.stop()

    lead.at_observe = stop_together
    daemon.run()
    assert f"{burst.id} of provider local is not down: it is in state online" in said()
