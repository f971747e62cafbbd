# SPDX-License-Identifier: MIT
"""`max_nodes_per_user` counts bursts that a user joins."""

import pytest

from tests.sim import Sim

LIMIT = 2


def two_idle_bursts():
    """Bursts of two nodes each, made for users 1 and 2, who are done with them."""
    s = Sim(
        plan={"share_users": True},
        limits={"max_nodes_per_user": LIMIT},
        deadlines={"idle": "1h"},
    )
    s.tick(2)
    jobs = [s.submit_lent(2, userid=user) for user in (1, 2)]
    s.until(lambda: s.lead.running() == jobs)
    for job in jobs:
        s.lead.finish(job)
    s.tick()
    return s


@pytest.mark.parametrize("at_once", [True, False])
def test_a_user_joins_no_more_bursts_than_his_limit_lets_him_have(at_once):
    s = two_idle_bursts()
    jobs = [s.submit_lent(2, userid=3)]
    if not at_once:
        s.tick(3)
    jobs.append(s.submit_lent(2, userid=3))
    s.tick(4)

    assert s.lead.running() == jobs[:1]
    s.lead.finish(jobs[0])
    s.until(lambda: s.lead.running() == jobs[1:])
    assert len(s.bursts) == 2


def test_a_burst_does_not_grow_for_one_user_beyond_what_another_may_have():
    s = Sim(plan={"share_users": True}, limits={"max_nodes_per_user": 4})
    s.tick(2)
    first = s.submit_lent(2, userid=1)
    s.until(lambda: s.lead.running() == [first])
    jobs = [s.submit_lent(2, userid=1), s.submit_lent(2, userid=2)]
    # The other's job gets ranks beside the first burst, in a burst of its own.
    s.until(lambda: s.lead.running() == [first, *jobs])
    s.tick(5)
    his = [b for b in s.bursts if b.live and 1 in b.lease.userids]
    assert sum(burst.lease.nodes for burst in his) == 4
    assert {2} in [set(b.lease.userids) for b in s.bursts]
