# SPDX-License-Identifier: MIT
"""When a provider is called for a burst, and when it is called again."""

import math

import pytest

from burst.core.provider_calls import may_call
from burst.core.provider_health import Outcome, Verb
from burst.core.records import Records, Transaction
from burst.core.world import LastCall, repeat_at
from tests.builders import T0, but, settings, view, world
from tests.lifecycles import run

PROVISION, REAP = Verb.PROVISION, Verb.REAP


FAILED = LastCall(verb=PROVISION, outcome=Outcome.TRANSIENT)
MADE = LastCall(verb=PROVISION, outcome=Outcome.OK)
REAPED = LastCall(verb=REAP, outcome=Outcome.OK, done_at=T0)


@pytest.mark.parametrize(
    ("last", "verb", "may"),
    [
        (None, PROVISION, True),
        (LastCall(verb=PROVISION), PROVISION, False),
        (LastCall(verb=PROVISION), REAP, False),
        (MADE, PROVISION, False),
        (but(MADE, retry_at=T0 + 9), REAP, True),
        (but(FAILED, retry_at=T0 + 1), PROVISION, False),
        (but(FAILED, retry_at=T0), PROVISION, True),
        (REAPED, REAP, False),
        (but(REAPED, done_at=T0 - 9), REAP, True),
    ],
)
def test_it_is_not_called_while_it_is_nor_before_it_may_be_again(last, verb, may):
    burst = run("provision-start")
    calls = {burst.id: last} if last else {}
    seen = but(world(view()), calls=calls)
    records = Records(bursts={burst.id: burst})
    assert may_call(Transaction(records, seen, settings(), T0), burst, verb) is may
    elsewhere = but(seen, providers={})
    assert not may_call(Transaction(records, elsewhere, settings(), T0), burst, verb)


def test_nothing_is_asked_again_while_it_is_being_asked():
    assert repeat_at(LastCall(verb=REAP)) == math.inf
    assert repeat_at(but(FAILED, retry_at=7.0)) == 7.0


def test_deletion_is_asked_for_ever_later_and_not_before_its_provider_says():
    def reaped(attempts, retry_at=0.0):
        its = {"done_at": 100.0, "attempts": attempts, "retry_at": retry_at}
        return repeat_at(but(REAPED, **its))

    times = [reaped(attempts) for attempts in range(1, 20)]
    assert times == sorted(times)
    assert 100.0 < times[0] < times[-1] == times[-2]
    assert reaped(1, retry_at=500.0) == 500.0
