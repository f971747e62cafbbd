# SPDX-License-Identifier: MIT
import pytest

from burst.core import limits
from burst.core.limits import Health, OfferHealth, Usage
from burst.model.reason import Reason
from tests.build import settings

SETTINGS = settings(limits={"breaker": 2, "breaker_pause": "5m", "set_aside": "10m"})
LIMITS = SETTINGS.limits


def test_the_breaker_opens_after_so_many_failures_in_a_row():
    once = limits.after_failure(Health(), LIMITS, 100.0)
    twice = limits.after_failure(once, LIMITS, 100.0)

    assert limits.unavailable("p", "o", once, 100.0) is None
    reason, facts = limits.unavailable("p", "o", twice, 100.0) or (None, None)
    assert reason is Reason.BREAKER
    assert facts == {"provider": "p", "failures": 2, "until": 400.0}
    assert limits.unavailable("p", "o", twice, 400.0) is None
    assert limits.after_success(twice).spotless


def test_a_refusal_disables_until_a_person_acts():
    refused = limits.after_refusal(Health(), "quota")

    reason, facts = limits.unavailable("p", "o", refused, 1e12) or (None, None)

    assert reason is Reason.DISABLED
    assert facts == {"provider": "p", "why": "quota"}


def test_an_offer_is_set_aside_for_longer_each_time():
    health = Health()
    lengths = []
    for _ in range(7):
        health = limits.set_aside(health, "o", LIMITS, 0.0)
        lengths.append(health.offers["o"].until)

    assert lengths == [600, 1200, 2400, 4800, 9600, 9600, 9600]
    assert limits.unavailable("p", "o", health, 0.0) == (
        Reason.SET_ASIDE,
        {"until": 9600},
    )
    assert limits.unavailable("p", "other", health, 0.0) is None
    assert limits.restore(health, "o").spotless
    assert health.offers["o"] == OfferHealth(7, 9600)


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 1), (2, 2), (5, 16), (99, 60)])
def test_pauses_grow_up_to_a_minute(attempts, seconds):
    assert limits.pause(attempts) == seconds


def why(refusal):
    return refusal.reason


def test_usage_refuses_what_is_too_much():
    usage = Usage(
        settings(
            limits={
                "max_nodes": 10,
                "max_bursts": 3,
                "max_nodes_per_burst": 6,
                "max_nodes_per_user": 7,
            }
        ).limits,
        [],
    )
    usage.add(5, 2, [100])

    assert why(usage.refuse("o", (7,), 0)) is Reason.LIMIT_BURST
    assert why(usage.refuse("o", (1, 1), 0)) is Reason.LIMIT_BURSTS
    assert why(usage.refuse("o", (6,), 0)) is Reason.LIMIT_NODES
    assert usage.refuse("o", (5,), 0) is None
    assert usage.refuse("o", (6,), 5) is None
    assert why(usage.refuse("o", (6,), 6)) is Reason.LIMIT_NODES
    refusal = usage.refuse_user("o", 3, 100)
    assert refusal
    assert refusal.text() == "limit of 7 nodes a user: 5 in use, 3 more needed"
    assert usage.refuse_user("o", 3, 200) is None
    assert usage.refuse_user("o", 99, None) is None
    usage.add_user(9, None)
    assert usage.refuse_user("o", 2, 100) is None


def test_no_limit_is_no_limit():
    usage = Usage(settings().limits, [])
    usage.add(10**6, 10**6, [1])

    assert usage.refuse("o", (10**6,), 0) is None
    assert usage.refuse_user("o", 10**6, 1) is None
