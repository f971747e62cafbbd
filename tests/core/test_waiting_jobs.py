# SPDX-License-Identifier: MIT
import math

from burst.core import lifecycle
from burst.core.burst_story import state_times
from burst.core.job_report import WaitingJobs
from burst.core.plan.estimate import StartEstimate
from burst.core.plan.online_times import ProviderTimes
from burst.core.records import Records
from burst.model.burst import BurstId
from burst.model.decision import Decision
from burst.model.event import Event
from burst.model.hold import Hold, HoldState
from burst.model.jobid import JobId
from burst.model.reason import Reason
from tests.builders import T0, but, job, offer, view, whole, world
from tests.lifecycles import CONTEXT, LEASE

ONE, TWO = JobId(1), JobId(2)
NOW = T0 + 10
UP = ("provision-start", "provision-finish", "online")


def burst_for(*jobs, name="burst-0-aaaaaa", events=(), **changes):
    lease = but(LEASE, id=BurstId(name), created=T0, **changes)
    burst = lifecycle.begin(lease, dict.fromkeys(jobs, T0), T0)
    for number, event in enumerate(events):
        made = Event(T0 + number + 1, event, CONTEXT.get(event, {}))
        burst = lifecycle.apply(burst, made)
    assert not burst.quarantined
    return burst


def waiting(*bursts, jobs=(ONE,), starts=None, offers=None, now=NOW, **on_record):
    """What waits where these bursts live and all these jobs wait."""
    lead = view(*(job(int(number), whole(2)) for number in jobs))
    seen = world(lead, local=offers or (offer(),))
    records = Records(bursts={burst.id: burst for burst in bursts}, **on_record)
    decided = {number: Decision(Reason.TURNED_DOWN) for number in jobs}
    return WaitingJobs(records, seen, decided, starts or {}, now)


def expected(*bursts, **changes):
    (row,) = waiting(*bursts, **changes).rows(9)
    return row["expected"], row["by"]


def learnt(*seconds):
    """Records of bursts that took so long to be online."""
    known = ProviderTimes()
    for each in seconds:
        known = known.learn("small/2", online=each)
    return {"local": known}


def estimate(at):
    return StartEstimate(expected=at, latest=at, earliest=at)


def test_those_that_waited_longest_come_first_and_no_more_than_asked_for():
    found = waiting(jobs=(TWO, ONE, JobId(3))).rows(2)

    assert [row["submitted"] for row in found] == [T0 + 1, T0 + 2]
    assert found[0]["needs"].startswith("2 whole nodes")
    assert found[0]["verdict"] == "turned-down"
    assert found[0]["refusals"] == []


def test_a_user_sees_his_own():
    seen = waiting(jobs=(ONE, TWO))

    assert len(seen.rows(9, userid=100)) == 2
    assert seen.rows(9, userid=101) == []


def test_without_a_lead_nothing_is_listed():
    seen = waiting()
    blind = but(seen.world, lead=None)

    assert but(seen, world=blind).rows(9) == []


def test_a_held_job_is_told_as_such():
    hold = Hold(urgency=16, state=HoldState.HELD, since=T0)
    (row,) = waiting(holds={ONE: hold}).rows(9)

    assert row["held"] == "held"


def test_nothing_is_expected_where_nothing_is_known():
    assert expected() == (None, "")
    assert expected(starts={ONE: estimate(math.inf)}) == (None, "")


def test_a_forecast_says_when_it_starts_here():
    assert expected(starts={ONE: estimate(NOW + 60)}) == (NOW + 60, "here")
    assert expected(starts={ONE: estimate(NOW - 60)}) == (NOW, "here")


def test_a_burst_on_its_way_counts_more_than_a_forecast():
    coming = burst_for(ONE)
    starts = {ONE: estimate(NOW + 900)}

    (row,) = waiting(coming, starts=starts, times=learnt(40.0)).rows(9)

    assert (row["expected"], row["by"]) == (T0 + 40, "burst")
    assert row["bursts"] == [coming.id]


def test_a_late_burst_is_expected_as_the_slowest_were_and_then_not_at_all():
    times = learnt(*[20.0] * 5, *[100.0] * 5)

    assert expected(burst_for(ONE), times=times, now=T0 + 30) == (T0 + 100, "burst")
    assert expected(burst_for(ONE), times=times, now=T0 + 101) == (None, "burst")


def test_of_the_first_burst_counts_what_its_provider_says():
    slow = (offer("other", join_time=5.0), offer(join_time=50.0))

    assert expected(burst_for(ONE), offers=slow) == (T0 + 50, "burst")
    assert expected(burst_for(ONE, provider="gone")) == (None, "burst")


def test_all_bursts_of_a_job_have_to_come():
    online = burst_for(ONE, events=UP)
    other = burst_for(ONE, TWO, name="burst-1-bbbbbb")

    assert expected(online) == (NOW, "burst")
    assert expected(online, other, times=learnt(40.0)) == (T0 + 40, "burst")


def test_a_burst_that_grows_is_expected_as_a_new_one_of_its_further_nodes():
    begun = T0 + 4
    grows = burst_for(ONE, events=(*UP, "grow"))
    sold = (offer(join_time=50.0),)

    assert expected(grows, offers=sold) == (begun + 50, "burst")
    assert expected(grows, times=learnt(40.0)) == (begun + 40, "burst")


def test_the_states_of_a_burst_are_told_with_their_times():
    burst = burst_for(ONE, events=("provision-start", "joined", "provision-finish"))

    assert state_times(burst) == [
        {"state": "new", "at": T0},
        {"state": "provision", "at": T0 + 1},
        {"state": "join", "at": T0 + 3},
    ]
