# SPDX-License-Identifier: MIT
"""Ensembles in a process of their own, beside a daemon that is run by hand."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from burst_ensemble.config.spec import EnsembleSpec
from burst_ensemble.core.record import spec_tables
from burst_ensemble.runtime.client import IN_DAEMON, SERVICE
from burst_ensemble.runtime.package import EnsemblePackage
from burst_ensemble.runtime.process import EnsembleProcess

from burst.config.convert import convert
from burst.errors import BurstError, ConfigError, Denied, LeadGone, NoDaemon, Unreadable
from burst.lead import ANSWER_S, RequestHandler, ServiceRequest
from tests.builders import settings
from tests.plugins.ensemble.runtime.ensemble_site import MEMBER, USER, host_of
from tests.sim import Sim
from tests.support.waiting import HANG_S, wait_until

APART = {"ensemble": {"in_daemon": False}}


class ConnectedLead:
    """A connection to a lead that has services of other names."""

    def __init__(self, site: Apart) -> None:
        self._site = site
        self.identity = site.sim.lead.identity
        self.shared_store = site.sim.lead.shared_store

    def serve_named(
        self, name: str, handler: RequestHandler, holder: Mapping[str, Any]
    ) -> None:
        assert name == SERVICE
        self._site.handlers.append(handler)

    def call_named(
        self, name: str, method: str, payload: Mapping[str, Any], timeout: float
    ) -> dict[str, Any]:
        raise NoDaemon(name)

    def call(
        self, method: str, payload: Mapping[str, Any], timeout: float = ANSWER_S
    ) -> dict[str, Any]:
        return self._site.answer(method, dict(payload), timeout)

    def close(self) -> None:
        self._site.closed += 1


class Apart:
    """A lead, its daemon, and the process beside it."""

    def __init__(self) -> None:
        self.sim = Sim(**APART)
        self.sim.tick(2)
        self._daemon = host_of(self.sim)
        self._one_at_a_time = threading.Lock()
        self.handlers: list[RequestHandler] = []
        self.error: BurstError | None = None
        self.in_daemon = False
        self.checks = 0
        """How often the daemon was asked whether it runs ensembles."""
        self.killed: threading.Event | None = None
        """The daemon was killed as it was asked that; set once that is given up."""
        self.limits: dict[str, float] = {}
        """Seconds for an answer, by method."""
        self.connected = self.closed = 0

    def process(self) -> EnsembleProcess:
        def connect() -> Any:
            self.connected += 1
            return ConnectedLead(self)

        return EnsembleProcess(settings(**APART), connect, lambda: self.sim.now)

    def answer(
        self, method: str, payload: dict[str, Any], timeout: float
    ) -> dict[str, Any]:
        """Answer for the daemon."""
        self.limits[method] = timeout
        self.checks += method == IN_DAEMON
        if method == IN_DAEMON and self.killed is not None:
            assert self.killed.wait(HANG_S)
            raise Unreadable(f"no answer within {timeout:g}s")
        if self.error is not None:
            raise self.error
        if method == IN_DAEMON:
            return {"in_daemon": self.in_daemon}
        with self._one_at_a_time:
            return self._daemon.call(method, payload)

    def ask(self, method: str, owner: bool = True, **payload: Any) -> Any:
        return self.handlers[-1](ServiceRequest(method, payload, USER, owner=owner))

    @contextmanager
    def running(self) -> Iterator[None]:
        process = self.process()
        thread = threading.Thread(target=process.run)
        thread.start()
        try:
            wait_until(lambda: self.handlers, "its service")
            yield
        finally:
            process.stop()
            thread.join()


def tables(*members: dict[str, Any]) -> dict[str, Any]:
    spec = convert(EnsembleSpec, {"name": "sweep", "members": members}, "test")
    return spec_tables(spec)


def test_it_answers_the_owner_with_and_without_a_daemon() -> None:
    site = Apart()
    with site.running():
        row = site.ask("ensemble-up", tables=tables(MEMBER))
        assert row["state"] == "running"
        site.error = NoDaemon("no daemon serves this lead")
        (row,) = site.ask("ensemble-status")["ensembles"]
        assert row["name"] == "sweep"
        ended = site.ask("ensemble-down", name="sweep")
        assert ended["state"] == "ending", "nobody knows whether anything is left"
        with pytest.raises(BurstError, match="no daemon serves"):
            site.ask("ensemble-up", tables=tables(MEMBER))
        with pytest.raises(Denied):
            site.ask("ensemble-status", owner=False)
    assert site.closed == site.connected


def test_a_daemon_that_is_killed_as_it_is_asked_holds_up_nobody() -> None:
    site = Apart()
    with site.running():
        site.ask("ensemble-up", tables=tables(MEMBER))
        site.killed, before = threading.Event(), site.checks
        wait_until(lambda: site.checks > before, "it to be asked, without an answer")
        site.error = NoDaemon("no daemon serves this lead")
        (row,) = site.ask("ensemble-status")["ensembles"]
        assert row["name"] == "sweep"
        site.error = Unreadable("no answer either")
        (row,) = site.ask("ensemble-status")["ensembles"]
        assert row["name"] == "sweep"
        site.killed.set()
        wait_until(lambda: site.checks > before + 1, "it to be asked again")
        assert len(site.handlers) == 1, "it has gone on"
    for method in (IN_DAEMON, "tagged"):
        assert site.limits[method] < ANSWER_S, "neither waits for a tick"


def test_members_with_agents_are_for_the_daemon_to_run() -> None:
    site = Apart()
    with site.running(), pytest.raises(ConfigError, match="mode external is for"):
        site.ask("ensemble-up", tables=tables({"name": "m", "mode": "external"}))


def test_where_the_lead_is_lost_it_connects_again_and_has_its_records(
    caplog: pytest.LogCaptureFixture,
) -> None:
    site = Apart()
    with site.running():
        site.ask("ensemble-up", tables=tables(MEMBER))
        site.error = LeadGone("the connection is lost")
        wait_until(lambda: "tries again" in caplog.text, "the loss to be noticed")
        site.error = None
        wait_until(lambda: len(site.handlers) == 2, "another connection")
        (row,) = site.ask("ensemble-status")["ensembles"]
        assert row["name"] == "sweep"
    assert "the connection is lost; it tries again" in caplog.text


def test_beside_a_daemon_that_runs_ensembles_it_does_not() -> None:
    site = Apart()
    site.in_daemon = True
    with pytest.raises(ConfigError, match="the daemon of this lead runs ensembles"):
        site.process().run()
    with pytest.raises(ConfigError, match="run in the daemon's process"):
        EnsembleProcess(settings(), site.process)  # type: ignore[arg-type]


@pytest.mark.parametrize("in_daemon", [True, False])
def test_where_they_run_is_told_before_they_are_started(in_daemon: bool) -> None:
    # The daemon serves a moment before: a process of ensembles may ask just then, and
    # ends where it is told that the daemon runs them.
    sim = Sim(ensemble={"in_daemon": in_daemon})
    package = EnsemblePackage(host_of(sim))
    asked: Any = ServiceRequest(IN_DAEMON, {}, USER, owner=True)
    told = package.methods()[IN_DAEMON](asked, sim.engine.snapshot)
    assert told == {"in_daemon": in_daemon}
