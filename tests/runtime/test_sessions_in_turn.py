# SPDX-License-Identifier: MIT
"""Calls of a session that has ended, and those of what comes after it."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from typing import Any

import pytest

from burst.config import Settings
from burst.core.provider_health import Verb
from burst.errors import NotFound
from burst.model.burst import BurstId
from burst.provider import BurstSpec, Provider
from burst.runtime.bursts_left import BurstsLeft
from burst.runtime.call_line import CallLines, QueuedCall
from burst.runtime.executor import ProviderWorkers
from burst.runtime.session import DaemonProcess, Session
from burst.testing import FakeCloud, FakeProvider, FakeSettings
from burst.wakeup import WakeUp
from tests.builders import NODE, settings, whole
from tests.fakes import FakeLead
from tests.support.waiting import HANG_S, wait_until

ONE = BurstId("burst-1")


class Site:
    """What is called of one provider, by all objects of it."""

    def __init__(self) -> None:
        self.cloud = FakeCloud()
        self.calls: list[str] = []
        self.go_on = threading.Event()
        """Set when the first provision may return."""
        self.lines = CallLines()
        self.lead = FakeLead()
        self.wakeup = WakeUp()

    def begin(self) -> Session:
        process = DaemonProcess(lines=self.lines)
        found = settings(
            daemon={"cadence": "0.1s"}, providers={"local": {"type": "fake"}}
        )
        return OnSite(self, self.lead, found, self.wakeup, Future, process)

    def provider(self, name: str = "local", owner: str = "owner") -> Provider:
        return Slow(self, name, owner)


class Slow(FakeProvider):
    """Its first provision at the site waits before it makes anything."""

    def __init__(self, site: Site, name: str, owner: str) -> None:
        known = FakeSettings(max_nodes=8, shape=NODE)
        super().__init__(name, known, owner, site.cloud)
        self.site = site

    def provision(self, spec: BurstSpec) -> None:
        first = "provision" not in self.site.calls
        self.site.calls.append("provision")
        if first:
            assert self.site.go_on.wait(HANG_S)
            self.site.calls.append("made")
        super().provision(spec)

    def observe(self) -> Any:
        self.site.calls.append("observe")
        return super().observe()

    def reap(self, burst_id: BurstId) -> None:
        self.site.calls.append("reap")
        super().reap(burst_id)


class OnSite(Session):
    """A session whose provider is of the site."""

    def __init__(self, site: Site, *parts: Any) -> None:
        self._site = site
        super().__init__(*parts)

    def load(self, settings: Settings, owner: str) -> Mapping[str, Provider]:
        return {name: self._site.provider(name, owner) for name in settings.providers}


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    yield site
    site.go_on.set()
    site.lines.close()


def tick_until(session: Session, site: Site, call: str) -> None:
    def called() -> bool:
        session.tick(0.02)
        return call in site.calls

    wait_until(called, call, pause=0.0)


def test_a_call_of_the_session_before_ends_before_the_next_session_calls(
    site: Site,
) -> None:
    first = site.begin()
    first.start()
    site.lead.submit(whole(4))
    tick_until(first, site, "provision")
    first.close()
    seen = list(site.calls)

    second = site.begin()
    second.start()
    for _ in range(20):
        second.tick(0.02)
    assert site.calls == seen
    site.go_on.set()

    def joined() -> bool:
        second.tick(0.02)
        return site.calls.count("observe") > seen.count("observe")

    wait_until(joined, "a call of the second session", pause=0.0)
    assert site.calls[len(seen)] == "made"
    second.close()


def reaping(provider: Provider, burst: BurstId) -> QueuedCall:
    return QueuedCall(
        provider="local", verb=Verb.REAP, burst=burst, providers={"local": provider}
    )


class Reaped(FakeProvider):
    """Notes what is reaped; the first call waits."""

    def __init__(self) -> None:
        super().__init__("local")
        self.reaped: list[BurstId] = []
        self.go_on = threading.Event()

    def reap(self, burst_id: BurstId) -> None:
        self.reaped.append(burst_id)
        if len(self.reaped) == 1:
            assert self.go_on.wait(HANG_S)
        raise NotFound("it is gone")


def test_a_call_that_waits_when_its_session_ends_is_not_made_nor_is_any_result_told(
    site: Site,
) -> None:
    provider, woken = Reaped(), threading.Semaphore(0)
    first = ProviderWorkers(lambda: 0.0, woken.release, site.lines)
    second = ProviderWorkers(lambda: 0.0, woken.release, site.lines)
    for burst in (ONE, BurstId("burst-2")):
        first.submit(reaping(provider, burst))
    wait_until(lambda: provider.reaped, "the first call")
    first.close()
    second.submit(reaping(provider, BurstId("burst-3")))
    provider.go_on.set()
    for _ in range(2):
        assert woken.acquire(timeout=HANG_S)

    assert provider.reaped == [ONE, "burst-3"]
    assert [result.call.burst for result in second.collect()] == ["burst-3"]


def test_a_thread_that_waits_keeps_nothing_of_an_ended_session(site: Site) -> None:
    class Owner(ProviderWorkers):
        """What would refer to the session."""

    provider, woken = Reaped(), threading.Semaphore(0)
    provider.go_on.set()
    first = Owner(lambda: 0.0, woken.release, site.lines)
    first.submit(reaping(provider, ONE))
    assert woken.acquire(timeout=HANG_S)
    first.close()
    kept = weakref.ref(first)
    del first

    def is_gone() -> bool:
        gc.collect()
        return kept() is None

    wait_until(is_gone, "the owner of the call to go")


def bursts_left(limit: str) -> BurstsLeft:
    found = settings(daemon={"on_stop": "reap"}, deadlines={"reap": limit})
    return BurstsLeft(
        settings=found, owner="owner", path=None, bursts=(("local", ONE),)
    )


def test_a_burst_of_a_lost_lead_is_reaped_once_no_call_is_under_way(
    site: Site, caplog: pytest.LogCaptureFixture
) -> None:
    under_way, after = Reaped(), Reaped()
    after.go_on.set()
    workers = ProviderWorkers(lambda: 0.0, lambda: None, site.lines)
    workers.submit(reaping(under_way, BurstId("burst-2")))
    wait_until(lambda: under_way.reaped, "the call")
    workers.close()
    with caplog.at_level("INFO", "burst"):
        bursts_left("0s").end(site.lines, lambda *_: {"local": after})
    assert after.reaped == []
    assert f"{ONE} of provider local: to delete what is left" in caplog.text

    caplog.clear()
    ending = threading.Thread(
        target=bursts_left("1h").end,
        args=(site.lines, lambda *_: {"local": after}),
    )
    ending.start()
    under_way.go_on.set()
    ending.join(HANG_S)
    assert after.reaped == [ONE]
    assert "to delete what is left" not in caplog.text
