# SPDX-License-Identifier: MIT
"""When a provider is asked for the same again."""

import math

from burst.core.provider_health import Outcome, Verb
from burst.core.world import LastCall, repeat_at


def test_nothing_is_asked_again_while_it_is_being_asked():
    assert repeat_at(LastCall(verb=Verb.REAP)) == math.inf
    failed = LastCall(verb=Verb.PROVISION, outcome=Outcome.TRANSIENT, retry_at=7.0)
    assert repeat_at(failed) == 7.0


def test_deletion_is_asked_for_ever_later_and_not_before_its_provider_says():
    def reaped(attempts, retry_at=0.0):
        call = LastCall(
            verb=Verb.REAP,
            outcome=Outcome.OK,
            done_at=100.0,
            attempts=attempts,
            retry_at=retry_at,
        )
        return repeat_at(call)

    times = [reaped(attempts) for attempts in range(1, 20)]
    assert times == sorted(times)
    assert 100.0 < times[0] < times[-1] == times[-2]
    assert reaped(1, retry_at=500.0) == 500.0
