# SPDX-License-Identifier: MIT
"""How often guests may call the service, and that this takes no memory without end."""

import pytest

from burst.errors import CallsTooOften
from burst.model.call_rate import CallRate
from burst.runtime import call_limits
from burst.runtime.call_limits import CallLimits
from tests.runtime.asking import GUEST, Asking


class Limited:
    """Limits by a clock that the test moves."""

    def __init__(self, at_once, per_second=20.0):
        self.now = 0.0
        rate = CallRate(per_second, at_once)
        self.limits = CallLimits(rate, lambda: self.now)

    def taken(self, method="status", userid=GUEST, owner=False, tries=1000):
        """How many of so many calls at once are taken."""
        for number in range(tries):
            try:
                self.limits.admit(method, userid, owner)
            except CallsTooOften as error:
                self.told = str(error)
                return number
        return tries


def test_a_flood_is_refused_and_told_when_to_try_again():
    limited = Limited(20, per_second=0.5)
    assert limited.taken() == 20
    assert limited.told == (
        "you call the daemon too often: it allows 0.5 calls a second in the long run;"
        " try again in 2 s"
    )
    limited.now += 10
    assert limited.taken() == 5
    # Of each user by himself, and never of the owner.
    assert limited.taken(userid=GUEST + 1) == 20
    assert limited.taken(owner=True) == 1000
    limited.now += 1000
    assert limited.taken() == 20


def test_what_costs_the_daemon_more_counts_for_more():
    assert Limited(100).taken("status") == 100
    assert Limited(100).taken("release") == 20
    assert Limited(100).taken("intake") == 400


def test_only_those_who_called_last_are_remembered():
    limited = Limited(10)
    assert limited.taken(userid=1) == 10
    for userid in range(2, call_limits.KNOWN_USERS + 1):
        limited.limits.admit("status", userid, False)
    assert limited.taken(userid=1) == 0
    for userid in range(call_limits.KNOWN_USERS):
        limited.limits.admit("status", 10_000 + userid, False)
    # Forgotten: he is as one who is new.
    assert limited.taken(userid=1) == 10


def test_the_service_refuses_a_flood():
    asking = Asking()

    def flood():
        for _ in range(1000):
            asking.api.admit("explain", GUEST, False)

    with pytest.raises(CallsTooOften, match="20 calls a second"):
        flood()
    asking.api.admit("explain", 0, True)
