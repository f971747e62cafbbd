# SPDX-License-Identifier: MIT
import msgspec
import pytest

from burst.core.placement.limits import Usage, usage_of
from burst.model.jobid import JobId
from burst.model.reason import Reason
from tests.builders import job, settings, whole
from tests.lifecycles import LEASE, run


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
    usage.add("local/small", 5, 2, [100])

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
    usage.add("local/small", 10**6, 10**6, [1])

    assert usage.refuse("o", (10**6,), 0) is None
    assert usage.refuse_user("o", 10**6, 1) is None


@pytest.mark.parametrize(("made_for", "bear"), [((), set()), ((7,), {7, 100})])
def test_a_burst_is_one_and_who_joined_it_bears_it_too(made_for, bear):
    lease = msgspec.structs.replace(LEASE, userids=made_for)
    burst = msgspec.structs.replace(run("provision-start"), lease=lease)
    used = usage_of(burst, {JobId(1): job(1, whole(2))})
    assert (used.nodes, used.bursts, used.userids) == (2, 1, bear)
