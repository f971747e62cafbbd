# SPDX-License-Identifier: MIT
"""When events are read, and of which bursts: those that have waited."""

import pytest

from burst.kits.kube.kinds import Manifest
from burst.provider import BurstStatus, Phase
from tests.kits.played_namespace import (
    BURSTS,
    JOBS,
    NOW,
    PODS,
    ROOT,
    Namespace,
    job,
    pod,
)
from tests.kits.pods import bursts_in
from tests.kits.seen_pods import event
from tests.support.waiting import wait_until


def denial(burst: str) -> Manifest:
    words = "FailedCreate: forbidden: no such class"
    return event("Job", burst, words, "2026-01-01T00:00:00Z")


class Waiting:
    """A namespace in which a burst has no pod yet, and the time."""

    def __init__(self, namespace: Namespace) -> None:
        self.namespace = namespace
        self.now = NOW - 90  # of the first denial, or soon after
        self.bursts = bursts_in(namespace.server, lambda: self.now)

    def look(self, after: float = 0.0) -> tuple[BurstStatus, int]:
        """Return the status of the first burst, and how often events were listed."""
        self.now += after
        before = self.namespace.asked("/events?")
        status = self.bursts.observe()[0]
        return status, self.namespace.asked("/events?") - before


@pytest.fixture
def waiting(namespace: Namespace) -> Waiting:
    return Waiting(namespace)


def test_a_burst_that_comes_up_has_no_events_read(waiting: Waiting) -> None:
    waiting.namespace.serve(PODS, pod(BURSTS[1]))
    for _ in range(10):
        status, lists = waiting.look(0.25)
        assert status.phase is Phase.PENDING
        assert lists == 0
    waiting.namespace.server.watches[PODS][-1].say("ADDED", pod(BURSTS[0]))
    wait_until(lambda: waiting.look()[0].phase is Phase.RUNNING, "a pod")
    assert waiting.look(60)[1] == 0


def test_of_one_that_waits_events_are_read_every_few_seconds(waiting: Waiting) -> None:
    waiting.namespace.serve(PODS, pod(BURSTS[1]))
    waiting.namespace.serve(f"{ROOT}/events", denial(BURSTS[0]))
    told, reads = [], []
    for _ in range(80):
        status, lists = waiting.look(0.25)
        told.append("no such class" in status.why)
        reads.append(bool(lists))
    assert told.index(True) == 12, "after 3 s"
    assert all(told[12:]), "what was read is kept"
    assert [at for at, read in enumerate(reads) if read] == [12, 32, 52, 72]
    status, _ = waiting.look(60)
    assert status.phase is Phase.FAILED, "it was denied for longer than a minute"


FORBIDDEN = 403, {"kind": "Status", "reason": "Forbidden", "message": "no such right"}
BUSY = 429, {"kind": "Status", "message": "too many requests"}


@pytest.mark.parametrize("answer", [FORBIDDEN, BUSY], ids=["right", "busy"])
def test_events_that_cannot_be_read_take_no_status_away(
    waiting: Waiting, answer: tuple[int, Manifest]
) -> None:
    waiting.namespace.serve(PODS, pod(BURSTS[1]))
    waiting.namespace.serve(f"{ROOT}/events", denial(BURSTS[0]))
    waiting.look()
    assert "no such class" in waiting.look(3)[0].why
    waiting.namespace.server.answer("GET", f"{ROOT}/events", answer)
    status, lists = waiting.look(5)
    assert "no such class" in status.why, "what was read before is kept"
    assert "events cannot be read" in status.why
    assert lists == 1
    assert waiting.bursts.observe()[1].why == ""
    assert waiting.look(1)[1] == 0, "it is not tried each time"
    waiting.namespace.serve(f"{ROOT}/events", denial(BURSTS[0]))
    assert "cannot be read" not in waiting.look(5)[0].why


def test_a_clock_that_is_set_back_does_not_end_the_reading(waiting: Waiting) -> None:
    waiting.namespace.serve(PODS, pod(BURSTS[1]))
    waiting.look()
    assert waiting.look(10)[1]
    assert not waiting.look(1)[1]
    waiting.look(-7000)
    waiting.namespace.serve(f"{ROOT}/events", denial(BURSTS[0]))
    assert "no such class" in waiting.look(5)[0].why


def test_of_one_that_ran_events_are_read_at_once(waiting: Waiting) -> None:
    """As only the event tells of a pod that made way for others."""
    for _ in range(3):
        assert waiting.look(10)[1] == 0
    pods = waiting.namespace.server.watches[PODS][-1]
    pods.say("DELETED", pod(BURSTS[0]))
    wait_until(lambda: waiting.look()[0].phase is Phase.PENDING, "its end")
    assert waiting.look(2)[1], "the event may be written a moment later"
    assert not waiting.look(4)[1]
    assert waiting.look(2)[1]


def test_of_one_that_is_reaped_no_events_are_read(waiting: Waiting) -> None:
    ending = job(BURSTS[0])
    ending["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    waiting.namespace.serve(JOBS, ending, job(BURSTS[1]))
    for _ in range(5):
        status, lists = waiting.look(10)
        assert status.phase is Phase.ENDING
        assert lists == 0


def test_of_one_that_was_made_a_while_ago_events_are_read_at_once(
    waiting: Waiting,
) -> None:
    """As by a daemon that was restarted. The clock of the cluster may be ahead."""
    made = job(BURSTS[0])
    made["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    waiting.namespace.serve(JOBS, made, job(BURSTS[1]))
    waiting.namespace.serve(PODS, pod(BURSTS[1]))
    waiting.now = NOW - 300
    assert waiting.look()[1] == 0
    assert waiting.look(3)[1]
    later = bursts_in(waiting.namespace.server, lambda: NOW)
    before = waiting.namespace.asked("/events?")
    later.observe()
    assert waiting.namespace.asked("/events?") > before
