# SPDX-License-Identifier: MIT
"""Algorithms that raise, hang, or answer."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from functools import partial
from typing import Any

import msgspec
import pytest
from burst_ensemble.algorithm import MemberDecision, MemberView, Memory
from burst_ensemble.core.wishes import AlgorithmFault
from burst_ensemble.runtime.algorithms import AlgorithmCalls, call_on_thread

from tests.support.waiting import HANG_S, wait_until

VIEW = MemberView(name="a")
PATIENT = partial(call_on_thread, longest=HANG_S)


class Gated:
    """Returns once the test lets it."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.calls = 0
        self.ended = 0

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        self.calls += 1
        self.gate.wait()
        self.ended += 1
        return MemberDecision(nodes=int(now), memory=memory)


class Broken:
    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        raise SystemExit(view.name)


def test_each_is_asked_with_what_it_remembers() -> None:
    gated = Gated()
    gated.gate.set()
    algorithms = {"one": gated, "two": gated}
    memory = {"two": {"since": 1}}
    found = AlgorithmCalls(PATIENT).ask("e/a", algorithms, (VIEW, memory), 7.0)
    assert found == {
        "one": MemberDecision(nodes=7),
        "two": MemberDecision(nodes=7, memory={"since": 1}),
    }
    assert list(found) == ["one", "two"]


def test_what_one_writes_into_its_memory_before_it_raises_is_not_remembered() -> None:
    class Marking:
        def decide(self, view: MemberView, memory: Any, now: float) -> MemberDecision:
            memory["done"].append(view.name)
            raise ValueError(now)

    memory: Mapping[str, Memory] = {"marks": {"done": []}}
    AlgorithmCalls(PATIENT).ask("e/a", {"marks": Marking()}, (VIEW, memory), 7.0)
    assert memory == {"marks": {"done": []}}


def test_a_memory_may_be_as_deep_as_its_record() -> None:
    deep: Memory = {}
    for _ in range(500):
        deep = {"in": deep}
    gated = Gated()
    gated.gate.set()
    found = AlgorithmCalls(PATIENT).ask("e/a", {"x": gated}, (VIEW, {"x": deep}), 7.0)
    assert isinstance(found["x"], MemberDecision)
    assert msgspec.json.encode(found["x"].memory) == msgspec.json.encode(deep)


def test_one_that_hangs_is_left_alone_until_it_returns() -> None:
    gated = Gated()
    calls = AlgorithmCalls(partial(call_on_thread, longest=0.05))
    asked = {"slow": gated}
    late = AlgorithmFault("it took longer than 0.05 s")
    assert calls.ask("e/a", asked, (VIEW, {}), 1.0) == {"slow": late}
    # Its thread may have had no turn yet.
    wait_until(lambda: gated.calls, "the call")
    assert calls.ask("e/a", asked, (VIEW, {}), 100.0) == {"slow": late}
    assert gated.calls == 1
    # Of another member it is asked all the same.
    assert calls.ask("e/b", asked, (VIEW, {}), 100.0) == {"slow": late}
    gated.gate.set()
    wait_until(lambda: gated.ended == 2, "both to return")

    def answers() -> bool:
        return calls.ask("e/a", asked, (VIEW, {}), 103.0) == {
            "slow": MemberDecision(nodes=103)
        }

    wait_until(answers, "the thread to end")


def test_one_that_raises_is_told_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = AlgorithmCalls(PATIENT).ask("e/a", {"bad": Broken()}, (VIEW, {}), 1.0)
    assert found == {"bad": AlgorithmFault("it raised SystemExit('a')")}
    assert "algorithm bad of e/a raised" in caplog.text
    assert "raise SystemExit" in caplog.text


class Counted:
    """Raises until the test mends it."""

    def __init__(self) -> None:
        self.at: list[float] = []
        self.works = False

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        self.at.append(now)
        if not self.works:
            raise ValueError("no")
        return MemberDecision()


def test_one_that_keeps_failing_is_asked_less_and_others_as_ever() -> None:
    calls, bad, good = AlgorithmCalls(PATIENT), Counted(), Counted()
    good.works = True
    checks = [10.0 * number for number in range(1200)]
    for now in checks:
        found = calls.ask("e/a", {"bad": bad, "good": good}, (VIEW, {}), now)
        assert found["bad"] == AlgorithmFault("it raised ValueError('no')")
    assert good.at == checks
    assert bad.at == [0, 60, 120, 240, 480, 960, 1920, 3840, 7440, 11040]
    bad.works = True
    assert calls.ask("e/a", {"bad": bad}, (VIEW, {}), 14640.0)["bad"] == (
        MemberDecision()
    )
    bad.works = False
    calls.ask("e/a", {"bad": bad}, (VIEW, {}), 14650.0)
    calls.ask("e/a", {"bad": bad}, (VIEW, {}), 14710.0)
    assert bad.at[-3:] == [14640, 14650, 14710]


def test_a_clock_that_was_set_back_makes_no_pause_longer() -> None:
    calls, bad = AlgorithmCalls(PATIENT), Counted()
    for now in (8000.0, 100.0, 159.0, 160.0):
        calls.ask("e/a", {"bad": bad}, (VIEW, {}), now)
    assert bad.at == [8000, 100, 160]
