# SPDX-License-Identifier: MIT
"""Contract of `Lead.serve` and `Lead.call`: the lock, and the daemon's API."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any

import pytest

from burst.errors import BurstError, Denied, LeadError, NoDaemon, ServiceTaken
from burst.lead import Lead, ServiceRequest
from tests.contract.base import WithInstance
from tests.contract.instance import Instance, SharedInstance
from tests.support.waiting import HANG_S

HOLDER = {"pid": 4711, "host": "lead-0", "since": 1700000000.0}


def answer(request: ServiceRequest) -> dict[str, Any]:
    """Answer with the request, or fail in the way it asks for."""
    match request.method:
        case "echo":
            return {
                "payload": request.payload,
                "userid": request.userid,
                "owner": request.owner,
            }
        case "refuse":
            raise BurstError("no such burst", "burst status lists them")
        case "deny":
            raise Denied("that job is not yours")
        case method:
            raise RuntimeError(f"never heard of {method}")


@contextmanager
def serving_process(instance: Instance) -> Iterator[subprocess.Popen[str]]:
    """Yield a process that serves, after it says so; kill it at the end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.contract.serve", instance.opener, instance.uri],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "serving\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def until_no_daemon(lead: Lead) -> None:
    """Return once nobody serves; fail at the deadline."""
    deadline = time.monotonic() + HANG_S
    while True:
        try:
            lead.call("echo", {})
        except NoDaemon:
            return
        assert time.monotonic() < deadline, "the service is still there"


class ServiceContract(WithInstance):
    @pytest.fixture
    def caller(self, instance: Instance) -> Iterator[Lead]:
        caller = instance.lead()
        yield caller
        caller.close()

    def test_request_and_answer(self, lead: Lead, caller: Lead) -> None:
        lead.serve(answer, HOLDER)
        payload = {"text": "ƒ", "list": [1, {"a": None}], "float": 0.5}
        expected = {"payload": payload, "userid": os.getuid(), "owner": True}
        assert caller.call("echo", payload) == expected
        assert caller.call("echo", {})["payload"] == {}

    def test_a_daemon_may_listen_and_serve(
        self, lead: Lead, caller: Lead, instance: Instance
    ) -> None:
        lead.listen(lambda: None)
        lead.serve(answer, HOLDER)
        job = instance.submit(nodes=4)
        assert not lead.hold([job])
        assert caller.call("echo", {"a": 1})["payload"] == {"a": 1}

    def test_an_error_is_told_with_its_advice(self, lead: Lead, caller: Lead) -> None:
        lead.serve(answer, HOLDER)
        with pytest.raises(BurstError, match="no such burst; burst status lists them"):
            caller.call("refuse", {})

    def test_denied_is_denied(self, lead: Lead, caller: Lead) -> None:
        lead.serve(answer, HOLDER)
        with pytest.raises(Denied, match="that job is not yours"):
            caller.call("deny", {})

    def test_a_failure_nobody_expected_is_told_and_logged(
        self, lead: Lead, caller: Lead, caplog: pytest.LogCaptureFixture
    ) -> None:
        lead.serve(answer, HOLDER)
        with (
            caplog.at_level(logging.WARNING, "burst"),
            pytest.raises(BurstError, match="internal error"),
        ):
            caller.call("boom", {})
        assert "never heard of boom" in caplog.text
        assert caller.call("echo", {})["owner"]

    def test_nobody_serves_at_first(self, caller: Lead) -> None:
        with pytest.raises(NoDaemon):
            caller.call("echo", {})

    def test_the_second_daemon_is_told_of_the_first(
        self, lead: Lead, caller: Lead
    ) -> None:
        lead.serve(answer, HOLDER)
        with pytest.raises(ServiceTaken, match=r"4711.*lead-0"):
            caller.serve(answer, {"pid": 1, "host": "other", "since": 0.0})
        assert caller.call("echo", {})["owner"]

    def test_the_service_ends_with_close(
        self, caller: Lead, instance: Instance
    ) -> None:
        first = instance.lead()
        first.serve(answer, HOLDER)
        caller.call("echo", {})
        first.close()
        until_no_daemon(caller)
        caller.serve(answer, HOLDER)

    def test_the_service_ends_with_its_process(
        self, lead: Lead, caller: Lead, instance: Instance
    ) -> None:
        with serving_process(instance) as process:
            assert caller.call("echo", {"a": 1})["payload"] == {"a": 1}
            with pytest.raises(ServiceTaken, match=str(process.pid)):
                lead.serve(answer, HOLDER)
            process.kill()
            process.wait()
        until_no_daemon(caller)
        lead.serve(answer, HOLDER)
        assert caller.call("echo", {})["owner"]

    def test_a_slow_answer_does_not_hold_up_others(
        self, lead: Lead, instance: Instance
    ) -> None:
        begun, go_on = threading.Event(), threading.Event()

        def slow(request: ServiceRequest) -> dict[str, Any]:
            if request.method == "slow":
                begun.set()
                assert go_on.wait(HANG_S)
            return {"method": request.method}

        lead.serve(slow, HOLDER)
        with (
            closing(instance.lead()) as first,
            closing(instance.lead()) as second,
            ThreadPoolExecutor(1) as pool,
        ):
            waiting = pool.submit(first.call, "slow", {}, HANG_S)
            assert begun.wait(HANG_S)
            assert second.call("quick", {}) == {"method": "quick"}
            assert not waiting.done()
            go_on.set()
            assert waiting.result() == {"method": "slow"}

    def test_no_answer_in_time_is_not_no_daemon(self, lead: Lead, caller: Lead) -> None:
        go_on = threading.Event()

        def slow(request: ServiceRequest) -> dict[str, Any]:
            assert go_on.wait(HANG_S)
            return {}

        lead.serve(slow, HOLDER)
        with pytest.raises(LeadError) as caught:
            caller.call("slow", {}, timeout=0.2)
        go_on.set()
        assert not isinstance(caught.value, NoDaemon)

    def test_many_requests_at_once(self, lead: Lead, instance: Instance) -> None:
        lead.serve(answer, HOLDER)

        def ask(first: int) -> list[int]:
            with closing(instance.lead()) as caller:
                numbers = range(first, first + 50)
                return [caller.call("echo", {"n": n})["payload"]["n"] for n in numbers]

        with ThreadPoolExecutor(4) as pool:
            answers = pool.map(ask, range(0, 200, 50))
        assert [n for numbers in answers for n in numbers] == list(range(200))

    def test_close_waits_for_nothing(self, instance: Instance) -> None:
        lead = instance.lead()
        lead.listen(lambda: None)
        lead.serve(answer, HOLDER)
        lead.close()
        lead.close()


class GuestContract(WithInstance):
    def test_a_guest_is_answered_as_such(
        self, lead: Lead, instance: SharedInstance
    ) -> None:
        lead.serve(answer, HOLDER)
        with closing(instance.guest()) as guest:
            told = guest.call("echo", {"a": 1})
        assert told["payload"] == {"a": 1}
        assert told["owner"] is False
        assert told["userid"] != os.getuid()

    def test_a_guest_may_not_listen_or_serve(self, instance: SharedInstance) -> None:
        with closing(instance.guest()) as guest:
            with pytest.raises(Denied):
                guest.listen(lambda: None)
            with pytest.raises(Denied):
                guest.serve(answer, HOLDER)

    def test_a_guest_may_not_use_the_store(self, instance: SharedInstance) -> None:
        with closing(instance.guest()) as guest:
            with pytest.raises(Denied):
                guest.store().load()
            with pytest.raises(Denied):
                guest.store().write({"burst/x": "1"})

    def test_a_guest_may_not_drain(self, instance: SharedInstance) -> None:
        with closing(instance.guest()) as guest:
            with pytest.raises(Denied):
                guest.drain(frozenset({2}), "burst: idle")
            with pytest.raises(Denied):
                guest.undrain(frozenset({2}))
