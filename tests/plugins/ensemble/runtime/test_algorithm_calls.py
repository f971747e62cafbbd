# SPDX-License-Identifier: MIT
"""Algorithms that raise, hang, or answer."""

from __future__ import annotations

import threading

import pytest
from burst_ensemble.algorithm import MemberDecision, MemberView, Memory
from burst_ensemble.core.wishes import AlgorithmFault
from burst_ensemble.runtime.algorithms import AlgorithmCalls

from tests.support.waiting import HANG_S, wait_until

VIEW = MemberView(name="a")


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
    found = AlgorithmCalls(HANG_S).ask("e/a", algorithms, (VIEW, memory), 7.0)
    assert found == {
        "one": MemberDecision(nodes=7),
        "two": MemberDecision(nodes=7, memory={"since": 1}),
    }
    assert list(found) == ["one", "two"]


def test_one_that_hangs_is_left_alone_until_it_returns() -> None:
    gated = Gated()
    calls = AlgorithmCalls(longest=0.05)
    asked = {"slow": gated}
    late = AlgorithmFault("it took longer than 0.05 s")
    assert calls.ask("e/a", asked, (VIEW, {}), 1.0) == {"slow": late}
    # Its thread may have had no turn yet.
    wait_until(lambda: gated.calls, "the call")
    again = calls.ask("e/a", asked, (VIEW, {}), 2.0)["slow"]
    assert again == AlgorithmFault("an earlier call of it has not returned yet")
    assert gated.calls == 1
    # Of another member it is asked all the same.
    assert calls.ask("e/b", asked, (VIEW, {}), 2.0) == {"slow": late}
    gated.gate.set()
    wait_until(lambda: gated.ended == 2, "both to return")

    def answers() -> bool:
        return calls.ask("e/a", asked, (VIEW, {}), 3.0) == {
            "slow": MemberDecision(nodes=3)
        }

    wait_until(answers, "the thread to end")


def test_one_that_raises_is_told_with_its_traceback(
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = AlgorithmCalls(HANG_S).ask("e/a", {"bad": Broken()}, (VIEW, {}), 1.0)
    assert found == {"bad": AlgorithmFault("it raised SystemExit('a')")}
    assert "algorithm bad of e/a raised" in caplog.text
    assert "raise SystemExit" in caplog.text
