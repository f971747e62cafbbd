# SPDX-License-Identifier: MIT
import asyncio
import threading
from typing import Any

import pytest

from burst.core.provider_health import Outcome, Verb
from burst.errors import (
    CertificateError,
    ConfigError,
    InsufficientCapacity,
    NotFound,
    Refused,
    SpecRefused,
    Transient,
)
from burst.model.burst import BurstId
from burst.runtime.call_line import QueuedCall
from burst.runtime.executor import ProviderWorkers, run_call
from burst.testing.fake import FakeProvider
from tests.support.waiting import HANG_S, wait_until


class Reaping(FakeProvider):
    """A provider of which only `reap` is called, which does what the test says."""

    def __init__(self, do):
        super().__init__()
        self.do = do

    def reap(self, burst_id):
        self.do()


def reaping(providers: dict[str, Any], provider="p", burst="burst-1"):
    return QueuedCall(
        provider=provider, verb=Verb.REAP, burst=BurstId(burst), providers=providers
    )


def task(do, provider="p", burst="burst-1"):
    return reaping({provider: Reaping(do)}, provider, burst)


def results_of(workers, count):
    """Return the results of so many calls, in the order in which they ended."""
    results = []

    def has_all():
        results.extend(workers.collect())
        return len(results) == count

    wait_until(has_all, f"{count} results")
    return results


def raising(error):
    def do():
        raise error

    return do


@pytest.mark.parametrize(
    ("error", "outcome", "note"),
    [
        (NotFound("gone"), Outcome.NOT_FOUND, "gone"),
        (InsufficientCapacity("none", "wait"), Outcome.CAPACITY, "none; wait"),
        (Refused("quota", "ask"), Outcome.REFUSED, "quota; ask"),
        (Transient("busy", retry_after=7), Outcome.TRANSIENT, "busy"),
        (SpecRefused("too large"), Outcome.SPEC, "too large"),
        (ConfigError("no port"), Outcome.REFUSED, "no port"),
        (CertificateError("no key"), Outcome.REFUSED, "no key"),
        (SystemExit(3), Outcome.UNEXPECTED, "SystemExit: 3"),
        (KeyError("x" * 9000), Outcome.UNEXPECTED, f"KeyError: '{'x' * 3989}"),
        (KeyError("x"), Outcome.UNEXPECTED, "KeyError: 'x'"),
    ],
)
def test_the_class_of_an_error_is_the_outcome(error, outcome, note):
    answer = run_call(task(raising(error)), lambda: 5.0)

    assert (answer.outcome, answer.note) == (outcome, note)
    assert answer.retry_after == (7 if outcome is Outcome.TRANSIENT else None)
    assert (answer.error is error) == (outcome is Outcome.UNEXPECTED)
    assert answer.began_at == answer.done_at == 5.0


@pytest.mark.parametrize(
    ("offers", "kept"),
    [
        (("large", "huge"), ("large", "huge")),
        (["large", 3, None], ("large",)),
        ("large", ()),
        (7, ()),
        ([str(n) for n in range(999)], tuple(str(n) for n in range(100))),
    ],
)
def test_further_offers_without_capacity_are_kept_if_they_are_names(offers, kept):
    answer = run_call(
        task(raising(InsufficientCapacity("none", offers=offers))), lambda: 5.0
    )
    assert (answer.outcome, answer.offers) == (Outcome.CAPACITY, kept)
    assert run_call(task(raising(Transient("busy"))), lambda: 5.0).offers == ()


class Speechless(Exception):
    def __str__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize(
    "error",
    [
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
        Speechless(),
        Transient(None),  # type: ignore[arg-type]
        Transient("busy", retry_after=10**400),
    ],
)
def test_nothing_that_a_call_raises_ends_its_worker(error):
    workers = ProviderWorkers(lambda: 0.0, lambda: None)
    workers.submit(task(raising(error)))
    workers.submit(task(lambda: None))
    failed, worked = results_of(workers, 2)
    assert failed.outcome is not Outcome.OK
    assert worked.outcome is Outcome.OK


@pytest.mark.parametrize("patience", ["soon", float("nan"), float("inf")])
def test_what_an_error_says_can_be_stored_and_its_patience_is_a_number(patience):
    error = Transient("path \udc80", retry_after=patience)
    answer = run_call(task(raising(error)), lambda: 5.0)
    assert (answer.note, answer.retry_after) == ("path ?", None)


def test_a_call_that_waited_is_for_the_provider_that_the_settings_name_by_then():
    called = []
    waiting = task(lambda: called.append("old"))
    waiting.providers["p"] = Reaping(lambda: called.append("new"))

    assert run_call(waiting, lambda: 0.0).outcome is Outcome.OK
    assert called == ["new"]


def test_a_provider_that_hangs_keeps_no_other_from_working():
    woken, stuck = threading.Semaphore(0), threading.Event()
    workers = ProviderWorkers(lambda: 0.0, woken.release)
    try:
        workers.submit(task(stuck.wait, "slow"))
        for burst in "burst-1", "burst-2":
            workers.submit(task(lambda: None, "quick", burst))
        for _ in range(2):
            assert woken.acquire(timeout=HANG_S)
        answers = [(a.call.provider, a.call.burst) for a in workers.collect()]
        assert answers == [("quick", "burst-1"), ("quick", "burst-2")]
        assert workers.collect() == []
    finally:
        stuck.set()
        workers.close()
    # Workers end when they are closed.
    for thread in threading.enumerate():
        if thread.name in ("provider-slow", "provider-quick"):
            thread.join(HANG_S)
            assert not thread.is_alive()


class Meeting(FakeProvider):
    """A provider whose calls wait until so many are under way, or `longest` s."""

    def __init__(self, concurrency, parties, longest):
        super().__init__()
        self.concurrency, self.parties, self.longest = concurrency, parties, longest
        self.met = threading.Event()
        self.most = self.now = 0
        self.reaped = []
        self.lock = threading.Lock()

    def reap(self, burst):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.reaped.append(burst)
            if self.now == self.parties:
                self.met.set()
        self.met.wait(self.longest)
        with self.lock:
            self.now -= 1


def reap(provider, *bursts):
    """Reap these bursts; return the results."""
    woken = threading.Semaphore(0)
    workers = ProviderWorkers(lambda: 0.0, woken.release)
    for burst in bursts:
        workers.submit(reaping({"p": provider}, burst=burst))
    return results_of(workers, len(bursts))


@pytest.mark.parametrize(
    ("concurrency", "bursts", "most"),
    [
        (3, "1234", 3),
        # One after the other for one burst, for which no other waits.
        (3, "111", 1),
        (2, "112", 2),
    ],
)
def test_so_many_calls_are_under_way_at_a_time(concurrency, bursts, most):
    longest = 0.3 if most == 1 else HANG_S
    provider = Meeting(concurrency, parties=max(most, 2), longest=longest)
    results = reap(provider, *bursts)
    assert [result.outcome for result in results] == [Outcome.OK] * len(bursts)
    assert provider.most == most
    if most == 1:
        assert provider.reaped == [*bursts], "and in order"


def test_while_its_result_is_not_there_a_call_is_under_way():
    """A tick that sees none under way knows the results of all."""
    under_way, added, go = (threading.Event() for _ in range(3))

    class Held(dict[str, FakeProvider]):
        """Has who adds its call keep the line until `go`."""

        def get(self, *args):
            added.set()
            assert go.wait(HANG_S)
            return super().get(*args)

    def call():
        under_way.set()
        assert added.wait(HANG_S)

    workers = ProviderWorkers(lambda: 0.0, lambda: None)
    workers.submit(task(call))
    assert under_way.wait(HANG_S)
    second = reaping(Held(p=FakeProvider("p")))
    adding = threading.Thread(target=workers.submit, args=(second,))
    adding.start()
    try:
        # The first has ended, and cannot be noted as such yet.
        wait_until(workers.collect, "its result")
        assert workers.busy("p")
    finally:
        go.set()
        adding.join()
    results_of(workers, 1)


def test_its_threads_end_once_it_is_closed():
    workers = ProviderWorkers(lambda: 0.0, lambda: None)
    workers.submit(task(lambda: None, provider="closing"))
    results_of(workers, 1)
    workers.close()

    def names():
        return {thread.name for thread in threading.enumerate()}

    wait_until(lambda: "provider-closing" not in names(), names)


def test_after_a_reload_calls_of_the_provider_before_end_first():
    woken, go, under_way = (threading.Semaphore(0) for _ in range(3))
    order = []

    class Old(FakeProvider):
        concurrency = 4

        def reap(self, burst):
            under_way.release()
            assert go.acquire(timeout=HANG_S)
            order.append("old")

    class New(FakeProvider):
        concurrency = 4

        def reap(self, burst):
            order.append("new")

    providers: dict[str, Any] = {"p": Old()}
    workers = ProviderWorkers(lambda: 0.0, woken.release)
    for burst in ("burst-1", "burst-2"):
        workers.submit(reaping(providers, burst=burst))
        assert under_way.acquire(timeout=HANG_S)
    assert workers.busy("p")
    providers["p"] = New()
    workers.submit(reaping(providers, burst="burst-3"))
    go.release()
    assert woken.acquire(timeout=HANG_S)
    assert order == ["old"]
    go.release()
    results_of(workers, 3)
    assert order == ["old", "old", "new"]
    wait_until(lambda: not workers.busy("p"), "the line to be quiet")
