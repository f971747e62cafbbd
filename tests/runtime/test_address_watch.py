# SPDX-License-Identifier: MIT
"""The lead is reached at another address, as a Service tells, while the daemon runs."""

import logging
import threading

import pytest

from burst.config import LeadSettings
from burst.errors import LeadError
from burst.model.lead import LeadIdentity
from burst.runtime.lead_watch import AddressWatch
from tests.builders import T0, but, identity
from tests.support.waiting import wait_until

BEFORE, AFTER = "tcp://10.0.0.1:30093", "tcp://10.0.0.1:31000"
LEARNT = LeadSettings(address="node")
LEAD = but(identity(), endpoint=BEFORE)


class Asked:
    """What the cluster answers, and how often it was asked."""

    def __init__(self) -> None:
        self.endpoint = BEFORE
        self.trouble: Exception | None = None
        self.times = 0
        self.woken = threading.Event()

    def read(self, known: LeadIdentity, _: LeadSettings) -> LeadIdentity:
        self.times += 1
        if self.trouble is not None:
            raise self.trouble
        return but(known, endpoint=self.endpoint)

    def asks_again(self) -> None:
        before = self.times
        wait_until(lambda: self.times > before + 1, lambda: self.times)


def test_another_address_is_taken_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    asked = Asked()
    watch = AddressWatch(asked.woken.set, asked.read, pause=0.01)
    assert watch.follow(LEAD, LEARNT, T0) is LEAD
    asked.asks_again()
    assert watch.follow(LEAD, LEARNT, T0) is LEAD
    asked.endpoint = AFTER
    wait_until(asked.woken.is_set, lambda: asked.times)
    moved = watch.follow(LEAD, LEARNT, T0)
    assert (moved.endpoint, moved.moved) == (AFTER, T0)
    assert f"connect to {AFTER}" in caplog.text
    # It is the one in use from then on, and is compared with.
    assert watch.follow(moved, LEARNT, T0) is moved
    asked.asks_again()
    assert watch.follow(moved, LEARNT, T0) is moved
    watch.close()


@pytest.mark.parametrize("kind", [LeadError, KeyError])
def test_what_cannot_be_read_is_told_once_and_changes_nothing(
    caplog: pytest.LogCaptureFixture, kind: type[Exception]
) -> None:
    caplog.set_level(logging.INFO)
    asked = Asked()
    asked.trouble = kind("there is no Service")
    watch = AddressWatch(asked.woken.set, asked.read, pause=0.01)
    assert watch.follow(LEAD, LEARNT, T0) is LEAD
    asked.asks_again()
    asked.asks_again()
    assert watch.follow(LEAD, LEARNT, T0) is LEAD
    assert caplog.text.count("there is no Service") == 1
    watch.close()


def test_an_address_that_is_set_is_not_asked_for() -> None:
    asked = Asked()
    watch = AddressWatch(asked.woken.set, asked.read, pause=0.01)
    watch.follow(LEAD, LEARNT, T0)
    asked.asks_again()
    asked.endpoint = AFTER
    wait_until(asked.woken.is_set, lambda: asked.times)
    # The settings name one by now.
    assert watch.follow(LEAD, LeadSettings(address="10.0.0.9"), T0) is LEAD
    before = asked.times
    assert watch.follow(LEAD, LeadSettings(address="10.0.0.9"), T0) is LEAD
    assert asked.times <= before + 1
    watch.close()
