# SPDX-License-Identifier: MIT
"""Who may use which bank is read beside the ticks, whatever flux-accounting does."""

import logging
import threading
from collections.abc import Callable, Iterator

import pytest

from burst.errors import Denied, Unreadable
from burst.model.accounting import AccountingFacts, AssociationLimits, AssociationUse
from burst.model.banks import NOT_VERIFIED, Associations, Banks
from burst.runtime.bank_reader import LIFETIME_S, BankReader
from tests.builders import T0
from tests.support.waiting import wait_until

ANN = Associations({1: frozenset({"physics"})}, {1: "physics"})
BEN = Associations({2: frozenset({"maths"})})
HANGS = "accounting.list_users: no answer within 10s"


def hangs() -> Associations | None:
    raise Unreadable(HANGS)


def refuses() -> Associations | None:
    raise Denied("only the instance owner")


def fails() -> Associations | None:
    raise ZeroDivisionError


def gone() -> Associations | None:
    return None


class Accounting:
    """Answers what the test says, one request at a time."""

    def __init__(self) -> None:
        self.answer: Callable[[], Associations | None] = lambda: ANN
        self.asked = 0
        self.timeouts: list[float] = []

    def associations(self, timeout: float) -> Associations | None:
        self.timeouts.append(timeout)
        try:
            return self.answer()
        finally:
            self.asked += 1


class Reading:
    """A reader that asks without a pause, and a clock that stands."""

    def __init__(self) -> None:
        self.now = T0
        self.wakes = 0
        self.lead = Accounting()
        self.reader = BankReader(self.lead, self.wake, lambda: self.now, 0.005)

    def wake(self) -> None:
        self.wakes += 1

    def start(self, answer: Callable[[], Associations | None]) -> None:
        self.lead.answer = answer
        self.reader.start()
        self.asked_again()

    def then(self, answer: Callable[[], Associations | None]) -> None:
        self.lead.answer = answer
        self.asked_again()

    def asked_again(self) -> None:
        """Return once an answer was given since now, and taken in."""
        upto = self.lead.asked + 3
        wait_until(lambda: self.lead.asked >= upto, "three more requests")


@pytest.fixture
def reading() -> Iterator[Reading]:
    found = Reading()
    yield found
    found.reader.close()


def test_an_answer_is_taken_in_and_the_daemon_woken_once(reading: Reading) -> None:
    assert reading.reader.current() is NOT_VERIFIED
    reading.start(lambda: ANN)
    found = reading.reader.current()
    assert found == Banks(ANN)
    assert reading.wakes == 1
    reading.asked_again()
    assert reading.reader.current() is found
    reading.then(lambda: BEN)
    assert reading.reader.current() == Banks(BEN)
    assert reading.wakes == 2
    assert set(reading.lead.timeouts) == {10.0}


def test_the_first_answer_is_awaited_until_the_deadline(reading: Reading) -> None:
    go_on = threading.Event()

    def waits() -> Associations | None:
        go_on.wait()
        return ANN

    reading.lead.answer = waits
    reading.reader.start()
    assert reading.reader.current().awaited_until == T0 + 10.0
    reading.now = T0 + 10.0
    late = reading.reader.current()
    assert late.awaited_until == 0.0
    assert late.unverified == "flux-accounting did not answer in 10s"
    assert reading.reader.current() is late
    go_on.set()
    wait_until(lambda: reading.reader.current() == Banks(ANN), "a late answer")


def test_where_it_does_not_run_nothing_is_awaited_nor_said(
    reading: Reading, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO):
        reading.start(gone)
    found = reading.reader.current()
    assert found == NOT_VERIFIED
    reading.asked_again()
    assert reading.reader.current() is found
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (hangs, HANGS),
        (gone, "flux-accounting has ended"),
        (refuses, "only the instance owner"),
        (fails, "ZeroDivisionError()"),
    ],
)
def test_an_answer_holds_for_its_lifetime(
    answer: Callable[[], Associations | None],
    why: str,
    reading: Reading,
    caplog: pytest.LogCaptureFixture,
) -> None:
    reading.start(lambda: ANN)
    known = reading.reader.current()
    with caplog.at_level(logging.INFO):
        reading.then(answer)
        reading.now += LIFETIME_S - 1
        reading.asked_again()
        assert reading.reader.current() is known
        reading.now += 1
        reading.asked_again()
        assert reading.reader.current().associations is None
        lost = reading.reader.current().unverified
        assert lost == (NOT_VERIFIED.unverified if answer is gone else why)
        assert reading.reader.current() is reading.reader.current()
        reading.then(lambda: ANN)
        assert reading.reader.current() == known
    told = [text for text in caplog.messages if text.startswith("banks are ")]
    assert told[0].startswith(f"banks are not verified: {why}; ")
    assert told[0].endswith("; its last answer is used for 1h")
    assert told[1].endswith("; the banks that jobs name are used")
    assert told[2:] == ["banks are verified again"]


FULL = AssociationLimits(max_nodes=4, running=AssociationUse(1, 4, 16))
FREE = AssociationLimits(max_nodes=4)


def with_limits(limits: AssociationLimits) -> Associations:
    facts = AccountingFacts(associations={(1, "physics"): limits})
    return Associations(ANN.banks, ANN.defaults, facts)


def facts_of(reading: Reading) -> AccountingFacts:
    found = reading.reader.facts()
    assert found is not None
    return found


def test_limits_are_told_beside_the_banks_and_a_change_wakes(reading: Reading) -> None:
    assert reading.reader.facts() is None
    reading.start(lambda: with_limits(FULL))
    known = reading.reader.current()
    assert known == Banks(ANN)
    assert facts_of(reading).read_at == T0
    assert facts_of(reading).associations == {(1, "physics"): FULL}
    assert reading.wakes == 1
    reading.now += 5.0
    reading.asked_again()
    assert facts_of(reading).read_at == T0 + 5.0
    assert reading.wakes == 1
    reading.then(lambda: with_limits(FREE))
    assert facts_of(reading).associations == {(1, "physics"): FREE}
    assert reading.wakes == 2
    assert reading.reader.current() is known
    # They hold as long as the banks.
    reading.then(hangs)
    reading.now += LIFETIME_S - 1
    reading.asked_again()
    assert reading.reader.facts() is not None
    reading.now += 1
    reading.asked_again()
    assert reading.reader.facts() is None


def test_its_end_does_not_wait_for_a_request_that_hangs(reading: Reading) -> None:
    go_on = threading.Event()

    def waits() -> Associations | None:
        go_on.wait()
        return None

    reading.lead.answer = waits
    reading.reader.start()
    reading.reader.close()
    assert reading.lead.asked == 0
    go_on.set()
