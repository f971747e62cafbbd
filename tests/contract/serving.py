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

    def test_requests_are_answered_by_the_one_daemon_that_serves(
        self, lead: Lead, caller: Lead
    ) -> None:
        with pytest.raises(NoDaemon):
            caller.call("echo", {})
        lead.serve(answer, HOLDER)
        payload = {"text": "ƒ", "list": [1, {"a": None}], "float": 0.5}
        expected = {"payload": payload, "userid": os.getuid(), "owner": True}
        assert caller.call("echo", payload) == expected
        assert caller.call("echo", {})["payload"] == {}
        with pytest.raises(ServiceTaken, match=r"4711.*lead-0"):
            caller.serve(answer, {"pid": 1, "host": "other", "since": 0.0})
        assert caller.call("echo", {})["owner"]

    def test_errors_are_told_with_their_advice_and_what_nobody_expected_is_logged(
        self, lead: Lead, caller: Lead, caplog: pytest.LogCaptureFixture
    ) -> None:
        lead.serve(answer, HOLDER)
        with pytest.raises(BurstError, match="no such burst; burst status lists them"):
            caller.call("refuse", {})
        with pytest.raises(Denied, match="that job is not yours"):
            caller.call("deny", {})
        with (
            caplog.at_level(logging.WARNING, "burst"),
            pytest.raises(BurstError, match="internal error"),
        ):
            caller.call("boom", {})
        assert "never heard of boom" in caplog.text
        assert caller.call("echo", {})["owner"]

    def test_a_daemon_listens_and_serves_until_it_closes(
        self, caller: Lead, instance: Instance
    ) -> None:
        first = instance.lead()
        first.listen(lambda: None)
        first.serve(answer, HOLDER)
        job = instance.submit(nodes=4)
        assert not first.hold([job])
        assert caller.call("echo", {"a": 1})["payload"] == {"a": 1}
        first.close()
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

    def test_a_slow_answer_holds_up_no_other_and_is_not_no_daemon(
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
            with pytest.raises(LeadError) as caught:
                second.call("slow", {}, timeout=0.2)
            assert not isinstance(caught.value, NoDaemon)
            assert not waiting.done()
            go_on.set()
            assert waiting.result() == {"method": "slow"}

    def test_who_waits_for_a_daemon_that_closes_is_told(
        self, caller: Lead, instance: Instance
    ) -> None:
        begun, go_on = threading.Event(), threading.Event()

        def slow(_: ServiceRequest) -> dict[str, Any]:
            begun.set()
            assert go_on.wait(HANG_S)
            return {}

        first = instance.lead()
        first.serve(slow, HOLDER)
        with ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(caller.call, "slow", {}, HANG_S)
            assert begun.wait(HANG_S)
            first.close()
            try:
                with pytest.raises(NoDaemon):
                    waiting.result()
            finally:
                go_on.set()

    def test_many_requests_at_once(self, lead: Lead, instance: Instance) -> None:
        lead.serve(answer, HOLDER)

        def ask(first: int) -> list[int]:
            with closing(instance.lead()) as caller:
                numbers = range(first, first + 50)
                return [caller.call("echo", {"n": n})["payload"]["n"] for n in numbers]

        with ThreadPoolExecutor(4) as pool:
            answers = pool.map(ask, range(0, 200, 50))
        assert [n for numbers in answers for n in numbers] == list(range(200))


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

    def test_a_guest_may_not_do_what_daemons_do(self, instance: SharedInstance) -> None:
        with closing(instance.guest()) as guest:
            for call in (
                lambda: guest.listen(lambda: None),
                lambda: guest.serve(answer, HOLDER),
                lambda: guest.store().load(),
                lambda: guest.store().write({"burst/x": "1"}),
                lambda: guest.drain(frozenset({2}), "burst: idle"),
                lambda: guest.undrain(frozenset({2})),
            ):
                with pytest.raises(Denied):
                    call()
