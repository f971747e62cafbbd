# SPDX-License-Identifier: MIT
"""`max_nodes_per_user` counts bursts that a user joins."""

import pytest

from burst.model.request import BurstPreferences
from tests.builders import whole
from tests.sim import Sim

LENT = '{"properties":["burst"]}'
LIMIT = 2


def submit(s, user, nodes):
    return s.lead.submit(
        whole(nodes, constraint=LENT),
        userid=user,
        urgency=0,
        preferences=BurstPreferences(urgency=16),
    )


def two_idle_bursts():
    """Bursts of two nodes each, made for users 1 and 2, who are done with them."""
    s = Sim(
        plan={"share_users": True},
        limits={"max_nodes_per_user": LIMIT},
        deadlines={"idle": "1h"},
    )
    s.tick(2)
    jobs = [submit(s, user, 2) for user in (1, 2)]
    s.until(lambda: s.lead.running() == jobs)
    for job in jobs:
        s.lead.finish(job)
    s.tick()
    return s


@pytest.mark.parametrize("at_once", [True, False])
def test_a_user_joins_no_more_bursts_than_his_limit_lets_him_have(at_once):
    s = two_idle_bursts()
    jobs = [submit(s, 3, 2)]
    if not at_once:
        s.tick(3)
    jobs.append(submit(s, 3, 2))
    s.tick(4)

    assert s.lead.running() == jobs[:1]
    s.lead.finish(jobs[0])
    s.until(lambda: s.lead.running() == jobs[1:])
    assert len(s.bursts) == 2


def test_a_burst_does_not_grow_for_one_user_beyond_what_another_may_have():
    s = Sim(plan={"share_users": True}, limits={"max_nodes_per_user": 4})
    s.tick(2)
    first = submit(s, 1, 2)
    s.until(lambda: s.lead.running() == [first])
    jobs = [submit(s, 1, 2), submit(s, 2, 2)]
    # The other's job gets ranks beside the first burst, in a burst of its own.
    s.until(lambda: s.lead.running() == [first, *jobs])
    s.tick(5)
    his = [b for b in s.bursts if b.live and 1 in b.lease.userids]
    assert sum(burst.lease.nodes for burst in his) == 4
    assert {2} in [set(b.lease.userids) for b in s.bursts]
