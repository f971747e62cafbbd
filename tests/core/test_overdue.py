# SPDX-License-Identifier: MIT
from burst.core.lifecycle import apply
from burst.core.provider_calls import is_overdue, is_past_lease
from burst.model.burst import State
from burst.model.event import Event
from tests.builders import T0, but
from tests.lifecycles import WHOLE_WAY, leased, run


def test_a_burst_is_overdue_from_the_report_until_it_gets_further() -> None:
    drains = run(*WHOLE_WAY[:8])
    assert not is_overdue(drains)
    told = apply(drains, Event(T0 + 100, "overdue", {"note": "drain: a job"}))
    assert is_overdue(told)
    reaps = apply(told, Event(T0 + 200, "drained", {}))
    assert not is_overdue(reaps)
    again = apply(reaps, Event(T0 + 300, "overdue", {"note": "reap: a pod"}))
    assert is_overdue(again)
    assert not is_overdue(apply(again, Event(T0 + 400, "reaped", {})))


def test_a_burst_is_past_its_lease_a_while_after_its_end() -> None:
    burst = run(*WHOLE_WAY[:4])
    ends = leased(burst, end=T0 + 1000)
    assert not is_past_lease(ends, T0 + 1299)
    assert is_past_lease(ends, T0 + 1301)
    assert not is_past_lease(burst, T0 + 1e9)
    gone = but(ends, state=State.INACTIVE)
    assert not is_past_lease(gone, T0 + 1301)
