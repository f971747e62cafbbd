# SPDX-License-Identifier: MIT
import asyncio
import threading

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
from burst.runtime.executor import ProviderCall, ProviderWorkers, run_call


def task(do, provider="p"):
    return ProviderCall(provider=provider, verb=Verb.PROVISION, run=do)


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
    woken = threading.Semaphore(0)
    workers = ProviderWorkers(lambda: 0.0, woken.release)
    try:
        workers.submit(task(raising(error)))
        workers.submit(task(lambda: "deleted"))

        assert woken.acquire(timeout=10)
        assert woken.acquire(timeout=10)

        failed, worked = workers.collect()
        assert failed.outcome is not Outcome.OK
        assert worked.value == "deleted"
    finally:
        workers.close()


def test_a_note_can_be_stored_whatever_the_error_says():
    answer = run_call(task(raising(Transient("path \udc80"))), lambda: 5.0)

    assert answer.note == "path ?"


@pytest.mark.parametrize("patience", ["soon", float("nan"), float("inf")])
def test_patience_that_is_no_number_is_none(patience):
    error = Transient("busy", retry_after=patience)

    assert run_call(task(raising(error)), lambda: 5.0).retry_after is None


def test_what_a_call_returns_comes_back():
    assert run_call(task(lambda: [1, 2]), lambda: 0.0).value == [1, 2]


def test_a_provider_that_hangs_keeps_no_other_from_working():
    woken, stuck = threading.Semaphore(0), threading.Event()
    workers = ProviderWorkers(lambda: 0.0, woken.release)
    try:
        workers.submit(task(lambda: stuck.wait(30), "slow"))
        workers.submit(task(lambda: 1, "quick"))
        workers.submit(task(lambda: 2, "quick"))

        assert woken.acquire(timeout=10)
        assert woken.acquire(timeout=10)

        answers = workers.collect()
        assert [(a.task.provider, a.value) for a in answers] == [
            ("quick", 1),
            ("quick", 2),
        ]
        assert workers.collect() == []
    finally:
        stuck.set()
        workers.close()


def test_workers_end_when_they_are_closed():
    workers = ProviderWorkers(lambda: 0.0, lambda: None)
    workers.submit(task(lambda: None, "ending"))
    (thread,) = [t for t in threading.enumerate() if t.name == "provider-ending"]

    workers.close()

    thread.join(10)
    assert not thread.is_alive()
