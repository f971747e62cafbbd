# SPDX-License-Identifier: MIT
import math

import pytest

from burst.core.plan.limits import FurtherUse, Room, Usage, usage_of
from burst.model.burst import BurstId
from burst.model.jobid import JobId
from burst.model.reason import Reason
from tests.builders import but, job, settings, view, whole
from tests.lifecycles import LEASE, run


def limited(**limits):
    there = FurtherUse(
        nodes=5, bursts=2, charged={100: 5}, offer="local/small", until=50.0
    )
    return Usage(settings(limits=limits).limits, {BurstId("a"): there})


def new(*sizes, user=None, charged_nodes=0):
    return FurtherUse.new(
        "o", sizes, user, math.inf, FurtherUse.joined(user, charged_nodes)
    )


def grows(size, by):
    return FurtherUse(offer="o", sizes=(size,), nodes=by)


def why(usage, asked):
    refused = usage.why_not(asked)
    return refused and refused.reason


def stays(usage, name, until):
    usage.join(BurstId(name), FurtherUse(until=until))


def test_usage_refuses_what_is_too_much():
    usage = limited(
        max_nodes=10, max_bursts=3, max_nodes_per_burst=6, max_nodes_per_user=7
    )
    assert why(usage, new(7)) is Reason.LIMIT_BURST
    assert why(usage, new(1, 1)) is Reason.LIMIT_BURSTS
    assert why(usage, new(6)) is Reason.LIMIT_NODES
    assert why(usage, new(5)) is None
    assert why(usage, grows(6, 5)) is None
    assert why(usage, grows(6, 6)) is Reason.LIMIT_NODES
    refusal = usage.why_not(new(3, user=100))
    assert refusal
    assert refusal.text() == "limit of 7 nodes per user: 5 in use, 3 more needed"
    assert why(usage, new(3, user=200)) is None
    assert why(usage, new(3, user=200, charged_nodes=5)) is Reason.LIMIT_USER
    assert why(usage, FurtherUse.joined(100, 3)) is Reason.LIMIT_USER
    assert why(usage, FurtherUse.joined(None, 99)) is None
    usage.add(FurtherUse.joined(None, 9))
    assert why(usage, FurtherUse.joined(100, 2)) is None


def test_no_limit_is_no_limit():
    usage = limited()
    assert why(usage, new(10**6, user=1)) is None
    assert usage.when(new(10**6, user=1), math.inf) == Room(0.0, True, frozenset())
    usage.keep(JobId(1), new(10**6), 0.0, ())
    assert why(usage, new(10**6, user=1)) is None


def test_limits_are_waited_for_and_what_is_kept_is_no_other_jobs():
    usage = limited(max_nodes=8, max_nodes_per_user=8)
    assert usage.when(new(3), math.inf).start == 0.0
    room = usage.when(new(4), math.inf)
    assert (room.start, room.known, room.gone) == (50.0, True, {"a"})
    assert usage.when(new(9), math.inf) is None
    usage.keep(JobId(1), new(4), room.start, room.gone)
    # What is promised to one counts as in use for the next, and for all that stay.
    assert usage.when(new(5), math.inf) is None
    assert why(usage, new(3)) is None
    usage.add(new(2))
    assert why(usage, new(3)) is Reason.LIMIT_NODES
    assert why(usage, new(1)) is None
    usage = limited(max_nodes=8)
    usage.keep(JobId(1), new(7), 50.0, {BurstId("a"), BurstId("unknown")})
    assert why(usage, new(2)) is Reason.LIMIT_RESERVED
    brief = but(new(2), until=49.0)
    assert why(usage, brief) is None
    # A burst that stays for a job is waited for as long.
    usage = limited(max_nodes=8)
    stays(usage, "a", 60.0)
    stays(usage, "unknown", 60.0)
    stays(usage, "a", 20.0)
    assert usage.when(new(4), math.inf).start == 60.0
    stays(usage, "a", math.inf)
    assert usage.when(new(4), math.inf) is None
    assert usage.when(new(4), 99.0) == (99.0, False, {"a"})


def test_a_burst_that_ends_gives_back_all_that_jobs_joined_it_for():
    usage = limited(max_nodes=8, max_nodes_per_user=8)
    # It has five nodes, and grows by two for another user, who bears all of them.
    charged = {100: 2, 200: 7}
    usage.join(
        BurstId("a"),
        FurtherUse(offer="o", sizes=(7,), nodes=2, charged=charged, until=60.0),
    )
    assert why(usage, new(2)) is Reason.LIMIT_NODES
    room = usage.when(new(8, user=200), math.inf)
    assert room == (60.0, True, {"a"})


def test_what_is_waited_for_is_due_by_then_where_its_end_is_known():
    usage = limited(max_nodes=8)
    usage.begin(BurstId("b"), new(1))
    assert usage.due(BurstId("a")) == math.inf
    usage.keep(JobId(1), new(4), 70.0, {BurstId("a"), BurstId("b")})
    usage.keep(JobId(2), new(1), 80.0, {BurstId("a"), BurstId("gone")})
    assert [usage.due(BurstId(name)) for name in "ab"] == [70.0, math.inf]


def joins(until, *names):
    return FurtherUse.joined(100, 0, tuple(map(BurstId, names)), until)


def test_bursts_that_end_before_are_no_part_of_what_is_kept():
    """Five nodes are in use until 50."""
    usage = limited(max_nodes=8)
    usage.keep(JobId(1), new(3), 70.0, ())
    assert why(usage, new(3)) is None
    # One that stays for a further job is, from then on.
    assert why(usage, joins(80.0, "a")) is None
    usage.join(BurstId("a"), joins(70.0, "a"))
    assert why(usage, new(3)) is None
    usage.join(BurstId("a"), joins(80.0, "a"))
    assert why(usage, new(1)) is Reason.LIMIT_RESERVED
    for start in (49.0, 50.0):
        usage = limited(max_nodes=8)
        usage.keep(JobId(1), new(3), start, ())
        assert why(usage, new(1)) is (Reason.LIMIT_RESERVED if start < 50 else None)
    # So is one of which it is not known when it ends, as it is idle.
    usage = limited(max_nodes=8)
    usage.begin(BurstId("i"), FurtherUse.new("o", (1,), None, 0.0))
    usage.keep(JobId(1), new(6), 70.0, ())
    assert why(usage, new(2)) is Reason.LIMIT_RESERVED
    assert why(usage, new(1)) is None


def test_nothing_stays_that_would_be_too_much_with_what_is_kept():
    usage = limited(max_nodes=8, max_nodes_per_user=8)
    usage.keep(JobId(1), new(2), 70.0, ())
    usage.begin(BurstId("b"), FurtherUse.new("o", (1,), None, 60.0))
    assert why(usage, joins(80.0, "a", "b")) is None
    with_a = but(new(2), staying=(BurstId("a"),))
    assert why(usage, with_a) is Reason.LIMIT_RESERVED
    assert why(usage, but(with_a, until=70.0)) is None
    usage.add(new(1))
    assert why(usage, joins(80.0, "a")) is None
    assert why(usage, joins(80.0, "b", "a")) is Reason.LIMIT_RESERVED
    assert why(usage, joins(70.0, "b", "a")) is None


def test_only_bursts_that_count_have_to_go():
    def use(user, offer, until):
        return FurtherUse.new(offer, (4,), user, until)

    there = {
        BurstId("a"): use(1, "local/o", 10.0),
        BurstId("b"): use(2, "local/p", 20.0),
    }
    usage = Usage(settings(limits={"max_nodes_per_user": 4}).limits, there)
    room = usage.when(new(1, user=2), math.inf)
    assert room
    assert room.gone == {"b"}
    usage = Usage(settings().limits, there, totals={"local/p": 4})
    asked = FurtherUse.new("local/p", (1,), 1, math.inf)
    assert why(usage, asked) is Reason.OFFER_FULL
    assert usage.when(asked, math.inf) == Room(20.0, True, frozenset({BurstId("b")}))


@pytest.mark.parametrize(("made_for", "bear"), [((), set()), ((7,), {7, 100})])
def test_a_burst_is_one_and_who_joined_it_bears_it_too(made_for, bear):
    lease = but(LEASE, userids=made_for)
    burst = but(run("provision-start"), lease=lease)
    used = usage_of(burst, view(job(1, whole(2))))
    assert (used.nodes, used.bursts, used.charged.keys()) == (2, 1, bear)
    assert used.until == math.inf
