# SPDX-License-Identifier: MIT
"""Providers are told what became of their bursts, and no burst waits for that."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from burst.errors import NotFound, Refused, Transient
from burst.model.burst import Burst, BurstId, Lease
from burst.model.event import LONGEST_NOTE, Event
from burst.runtime.event_teller import EventTeller, text_of
from burst.testing import FakeProvider
from tests.builders import NODE
from tests.support.waiting import wait_until

BURST, GONE = BurstId("burst-0-0a1b2c"), BurstId("burst-1-0a1b2c")
LEASE = Lease(
    id=BURST,
    provider="far",
    offer="nodes",
    slot="burst-0",
    hosts=("burst-0-0",),
    ranks=(1,),
    shape=NODE,
)
ONLINE = Event(1.0, "online", {"ranks": "1-3"})


class Noting(FakeProvider):
    """Notes events, or raises one error after the other first."""

    def __init__(self, *errors: Exception) -> None:
        super().__init__("far")
        self.errors = list(errors)
        self.asked: list[str] = []
        self.noted: list[tuple[str, str, str]] = []

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        self.asked.append(event.name)
        if self.errors:
            raise self.errors.pop(0)
        self.noted.append((burst_id, event.name, text))


@contextmanager
def telling(
    provider: FakeProvider, clock: Callable[[], float] = lambda: 0.0
) -> Iterator[Callable[..., None]]:
    """Give what tells events of BURST, whose provider this is."""
    teller = EventTeller(clock, pause=0.0)
    known = {BURST: Burst(lease=LEASE)}

    def tell(*events: Event) -> None:
        told = [(burst, event) for event in events for burst in (BURST, GONE)]
        teller.tell({"far": provider}, known, told)

    try:
        yield tell
    finally:
        teller.close()


def test_a_few_events_are_noted_in_order() -> None:
    provider = Noting()
    planned = Event(0.0, "submit", {"jobs": {"ƒA": 0.0, "ƒB": 0.0}})
    other = Event(0.5, "job-start", {"id": "ƒA"})
    lost = Event(2.0, "lost", {"ranks": "1", "note": "its node is gone"})
    with telling(provider) as tell:
        tell(planned, other, ONLINE, lost)
        wait_until(lambda: len(provider.noted) == 3, lambda: provider.noted)
    assert provider.noted == [
        (BURST, "submit", "it was planned for jobs ƒA, ƒB"),
        (BURST, "online", "it is online, with ranks 1-3"),
        (BURST, "lost", "it lost rank 1: its node is gone"),
    ]


@pytest.mark.parametrize("error", [NotFound("no Job yet"), Transient("busy")])
def test_what_cannot_be_noted_yet_is_tried_again(error: Exception) -> None:
    provider = Noting(error, error)
    with telling(provider) as tell:
        tell(ONLINE)
        wait_until(lambda: len(provider.noted) == 1, lambda: provider.asked)
    assert provider.asked == ["online"] * 3


def test_what_never_comes_is_left_out() -> None:
    class Absent(Noting):
        def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
            super().record_event(burst_id, event, text)
            if event.name == "online":
                raise NotFound("there is no Job yet")

    now = [0.0]
    provider = Absent()
    drain = Event(2.0, "drain", {"note": "idle"})

    def drained(times: int) -> bool:
        return provider.asked.count("drain") == times

    with telling(provider, lambda: now[0]) as tell:
        tell(ONLINE)
        wait_until(lambda: len(provider.asked) > 1, lambda: provider.asked)
        now[0] = 100.0
        tell(drain)
        wait_until(lambda: drained(1), lambda: provider.asked)
        tell(drain)
        wait_until(lambda: drained(2), lambda: provider.asked)
        # It was tried at most once more, between the two.
        before = provider.asked.count("online")
        tell(drain)
        wait_until(lambda: drained(3), lambda: provider.asked)
        assert provider.asked.count("online") == before


@pytest.mark.parametrize("error", [Refused("no right"), RuntimeError("a fault")])
def test_a_provider_that_cannot_is_left_alone_for_a_while(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    now = [0.0]
    provider = Noting(error)
    with telling(provider, lambda: now[0]) as tell:
        tell(ONLINE, ONLINE)
        wait_until(lambda: "cannot record" in caplog.text, lambda: caplog.text)
        now[0] = 700.0
        tell(Event(2.0, "drain", {"note": "idle"}))
        wait_until(lambda: len(provider.noted) == 1, lambda: provider.asked)
    assert str(error) in caplog.text
    assert caplog.text.count("cannot record") == 1


def test_nobody_waits_for_a_provider_that_hangs() -> None:
    """Of what comes meanwhile the oldest is left out."""
    gate = threading.Event()

    class Hanging(Noting):
        def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
            gate.wait(60)
            super().record_event(burst_id, event, text)

    provider = Hanging()
    with telling(provider) as tell:
        tell(*[ONLINE] * 1000)
        gate.set()
        tell(Event(2.0, "reaped", {}))
        wait_until(lambda: "reaped" in provider.asked, lambda: len(provider.asked))
    assert len(provider.asked) <= 201


def test_a_provider_without_the_interface_is_told_nothing() -> None:
    before = set(threading.enumerate())
    with telling(FakeProvider("far")) as tell:
        tell(ONLINE)
        assert set(threading.enumerate()) <= before


def test_a_text_has_an_end() -> None:
    long = Event(1.0, "exception", {"type": "failed", "note": "x" * 5000})
    assert len(text_of(long)) == LONGEST_NOTE
