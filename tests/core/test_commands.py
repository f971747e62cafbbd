# SPDX-License-Identifier: MIT
import pytest

from burst.core import burst_requests, commands
from burst.core.actions import DrainBurst, ProvisionBurst, ReleaseJobs
from burst.core.job_memo import memo
from burst.core.orphans import find_orphans
from burst.core.plan.slots import find_slots
from burst.core.provider_health import FailureRecord, Health
from burst.core.records import RecordChanges, Records, Transaction
from burst.core.tick import result_of
from burst.core.world import ProviderView
from burst.errors import BurstError, LeadError, Unreadable
from burst.model.burst import Isolated, Result, State
from burst.model.decision import Decision, OfferRejection
from burst.model.hold import HoldState
from burst.model.jobid import JobId
from burst.model.reason import Reason
from burst.provider import BurstStatus, Phase
from tests.builders import T0, but, identity, job, settings, view, whole, world
from tests.core.ticks import hold, recorded
from tests.lifecycles import LEASE, WHOLE_WAY, run

SETTINGS = settings()
NOW = T0 + 100
ONE, TWO, THREE = JobId(1), JobId(2), JobId(3)


def requested(demand, seen=None):
    seen = seen or world(view())
    tx = Transaction(Records(), seen, SETTINGS, NOW)
    decision, _ = burst_requests.make_requested_burst(tx, demand)
    return result_of(tx), decision


def changed(change, records, *asked):
    """What a command that needs no more than the records does."""
    tx = RecordChanges(records, NOW)
    change(tx, *asked)
    return result_of(tx)


def test_nodes_can_be_had_ahead_of_jobs():
    demand = burst_requests.request_nodes(3, slot="burst-1-[0-3]")

    made, verdict = requested(demand)

    (burst,) = made.records.bursts.values()
    assert burst.lease.slot == "burst-1"
    assert burst.lease.userids == ()
    assert made.actions == (ProvisionBurst(burst.id),)
    told = burst_requests.describe_request(verdict, demand)
    assert told == f"3 nodes of local/small as {burst.id}"


def test_a_request_that_cannot_be_met_says_why():
    demand = burst_requests.request_nodes(3, provider="gke")

    made, verdict = requested(demand)

    assert made.actions == ()
    assert burst_requests.describe_request(verdict, demand) == (
        "3 nodes: every offer was turned down"
        " (local/small: the job asks for provider gke)"
    )
    nothing = burst_requests.request_nodes(1)
    _, verdict = requested(nothing, but(world(view()), providers={}))
    told = burst_requests.describe_request(verdict, nothing)
    assert told == "1 node: no provider has an offer"


def test_a_request_for_a_slot_of_a_strange_name_is_answered():
    demand = burst_requests.request_nodes(1, slot='burst-0-0"')

    made, verdict = requested(demand)

    assert made.actions == ()
    assert verdict.reason is Reason.EXCLUDED


@pytest.mark.parametrize("kind", ["job", "command", "batch"])
def test_an_isolated_burst_has_something_to_run(kind):
    with pytest.raises(BurstError, match=f"isolated burst of kind {kind} cannot"):
        burst_requests.request_isolated(1, "", Isolated(kind=kind))


def test_requests_that_make_no_sense_are_refused():
    with pytest.raises(BurstError, match="0 nodes cannot be requested; request 1"):
        burst_requests.request_nodes(0)
    for slot in ("n[", "burst-0-[0-99999]", "\ud800"):
        with pytest.raises(BurstError, match="slot: "):
            burst_requests.request_nodes(1, slot=slot)
    with pytest.raises(Unreadable, match="the lead cannot be read"):
        requested(burst_requests.request_nodes(1), world(None))


@pytest.mark.parametrize(
    ("names", "state"),
    [
        ((), State.REAP),
        (WHOLE_WAY[:1], State.REAP),
        (WHOLE_WAY[:2], State.REAP),
        (WHOLE_WAY[:4], State.DRAIN),
        (WHOLE_WAY[:8], State.DRAIN),
        (WHOLE_WAY[:9], State.REAP),
    ],
)
def test_a_burst_can_be_taken_down_in_any_state(names, state):
    made = changed(commands.take_down_burst, recorded(run(*names)), LEASE.id, "said so")

    assert made.records.bursts[LEASE.id].state is state
    if names == WHOLE_WAY[:4]:
        (drain,) = made.actions
        assert isinstance(drain, DrainBurst)
        assert drain.ranks == {2, 3}
        assert made.records.bursts[LEASE.id].result is Result.CANCELED


def test_taking_down_a_quarantined_burst_is_the_persons_decision():
    odd = run("provision-start", "drained")

    made = changed(commands.take_down_burst, recorded(odd), LEASE.id, "said so")

    burst = made.records.bursts[LEASE.id]
    assert not burst.quarantined
    assert burst.state is State.REAP


def test_what_is_not_there_cannot_be_taken_down():
    with pytest.raises(BurstError, match=r"no burst x; live bursts: burst-0-aaaaaa"):
        changed(commands.take_down_burst, recorded(run()), "x", "")
    with pytest.raises(BurstError, match=r"no burst x; live bursts: none"):
        changed(commands.take_down_burst, Records(), "x", "")
    with pytest.raises(BurstError, match="has ended"):
        changed(commands.take_down_burst, recorded(run(*WHOLE_WAY)), LEASE.id, "")


def test_held_jobs_are_let_go_for_good():
    holds = {ONE: hold(HoldState.HELD, 7), TWO: hold(HoldState.RELEASED)}
    records = Records(holds={**holds, THREE: hold(HoldState.HOLDING)})
    assert commands.held_jobs(records) == [ONE, THREE]

    made = changed(commands.release_jobs, records, [ONE, THREE])

    assert made.actions == (ReleaseJobs({ONE: 7, THREE: 16}),)
    assert made.records.holds[ONE].state is HoldState.TAKEN_BACK
    with pytest.raises(LeadError, match="is not held by burst"):
        changed(commands.release_jobs, records, [TWO])
    with pytest.raises(LeadError, match="is not held by burst"):
        changed(commands.release_jobs, records, [JobId(9)])
    with pytest.raises(BurstError, match="burst knows no job ƒA: it has ended"):
        changed(commands.release_jobs, records, [JobId(9)], view())
    assert changed(commands.release_jobs, records, []).actions == ()


def test_a_job_that_was_let_go_is_its_users():
    records = Records(holds={ONE: hold(HoldState.TAKEN_BACK, 7)})
    freed = view(job(1, whole(1), urgency=20))

    for lead in (freed, view(), None):
        with pytest.raises(LeadError, match="is not held by burst"):
            changed(commands.release_jobs, records, [ONE], lead)


def test_a_job_whose_release_was_lost_can_be_let_go_once_more():
    records = Records(holds={ONE: hold(HoldState.TAKEN_BACK, 7)})
    lost = view(job(1, whole(1), urgency=0))

    made = changed(commands.release_jobs, records, [ONE], lost)

    assert made.actions == (ReleaseJobs({ONE: 7}),)


def test_a_provider_is_enabled_by_forgetting():
    failed = Health(rows={"method/reap": FailureRecord(1, T0, why="quota")})
    records = Records(health={"local": failed})

    assert changed(commands.enable_provider, records, "local").records.health == {}
    with pytest.raises(BurstError, match="provider x has no failures"):
        changed(commands.enable_provider, records, "x")


# Orphans.


def listed(burst):
    return BurstStatus(burst_id=burst, phase=Phase.RUNNING)


def seeing(*statuses, name="local", read_at=T0):
    its_view = ProviderView(statuses={s.burst_id: s for s in statuses}, read_at=read_at)
    return but(world(None), providers={name: its_view})


@pytest.mark.parametrize(
    ("records", "name", "why"),
    [
        (Records(), "local", "burst has no record of it"),
        (recorded(run()), "local", None),
        # Two tables of one type may see the same things.
        (recorded(run()), "kind", None),
        (recorded(run(*WHOLE_WAY)), "kind", "its record names provider local"),
        (
            recorded(run(*WHOLE_WAY)),
            "local",
            "its record says that it was deleted",
        ),
        (Records(unreadable={f"burst/{LEASE.id}": "torn"}), "local", None),
    ],
)
def test_an_orphan_is_what_no_record_explains(records, name, why):
    world = seeing(listed(LEASE.id), name=name, read_at=T0 + 1000)
    found = find_orphans(records, world, T0 + 1001)

    assert [orphan.why for orphan in found] == ([why] if why else [])


def test_what_was_listed_before_its_deletion_ended_is_no_orphan():
    records = recorded(run(*WHOLE_WAY))
    (burst,) = records.bursts.values()
    before, after = (seeing(listed(LEASE.id), read_at=burst.since + d) for d in (0, 1))
    assert find_orphans(records, before, burst.since) == ()
    assert find_orphans(records, after, burst.since + 2)
    # By a clock that was set back since.
    assert find_orphans(records, before, burst.since - 1)


# Memos.


JOINS = {"burst": "b", "state": "join", "online": 2, "nodes": 4}
JOINS |= {"words": "", "ends": ""}


@pytest.mark.parametrize(
    ("verdict", "state"),
    [
        (Decision(Reason.NO_SLOTS), "waiting"),
        (Decision(Reason.TOO_LARGE, {"need": 9, "most": 8}), "impossible"),
        (Decision(Reason.COMING, JOINS), "join 2/4"),
    ],
)
def test_a_memo_has_a_word_and_a_sentence(verdict, state):
    assert memo(verdict) == {"state": state, "why": verdict.text()}


def test_the_last_memo_of_a_job_is_true_as_it_runs_and_after_it():
    told = memo(Decision(Reason.RELEASED, {"ends": "", "by": ""}))
    why = "its nodes were online, and it was released for Flux to start it there"
    assert told == {"state": "released", "why": why}


def test_a_job_that_needs_us_not_has_no_memo():
    assert memo(Decision(Reason.LOCAL, {"patience": "1m"})) is None


def test_a_memo_names_the_offers_but_stays_short():
    refusals = tuple(OfferRejection(f"p/{n}", Reason.SLOTS_BUSY) for n in range(20))

    told = memo(Decision(Reason.TURNED_DOWN, {}, refusals))

    assert told
    text = told["why"]
    assert text.startswith("every offer was turned down: p/0: all rank slots")
    assert len(text) == 300
    assert text.endswith("…")


@pytest.mark.parametrize(
    ("text", "nodes"),
    [
        ("burst-0-[0-3]", 4),
        ("burst-0-[0-1]", 2),
        ("burst-0-0", 1),
        ("burst-0-[0-3],burst-1-[0-1]", 6),
        ("burst-0-[2-3],burst-1-[0-1]", 2),
        ("burst-0-[1-2]", 2),
        ("burst-0-3,burst-1-[2-3]", 3),
    ],
)
def test_any_hosts_of_slots_may_be_asked_for(text, nodes):
    slots = find_slots(identity("lead-0,burst-0-[0-3],burst-1-[0-3]"))
    burst_requests.check_slot(text, nodes, slots)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("burst-0-1", "bursts can have 1 node of burst-0-1, and 2 are requested"),
        ("lead-0", "no rank slot has lead-0; the lead's rank slots are burst-0-"),
        ("", "the list of hosts is empty; the lead's rank slots are burst-0-"),
        ("burst-0-[0-9]", "no rank slot has burst-0-\\[4-9\\]"),
    ],
)
def test_other_hosts_are_refused_with_the_slots_there_are(text, told):
    with pytest.raises(BurstError, match=told):
        burst_requests.check_slot(text, 2, find_slots(identity("lead-0,burst-0-[0-3]")))
    with pytest.raises(BurstError, match="rank slots are none"):
        burst_requests.check_slot("x", 1, ())


def test_of_hosts_that_join_through_another_the_first_may_be_asked_for():
    slots = find_slots(identity("lead-0,burst-0-[0-3]"))
    (slot,) = (but(slot, divisible=False) for slot in slots)
    burst_requests.check_slot("burst-0-[0-1,3]", 2, [slot])
    for text in ("burst-0-[0-1,3]", "burst-0-[1-3]"):
        with pytest.raises(BurstError, match="if its hosts join through another host"):
            burst_requests.check_slot(text, 3, [slot])


def test_a_request_that_becomes_several_bursts_names_each():
    demand = burst_requests.request_nodes(6)
    made, verdict = requested(demand)
    names = ", ".join(made.records.bursts)
    assert len(made.records.bursts) == 2
    told = burst_requests.describe_request(verdict, demand)
    assert told == f"6 nodes of local/small as {names}"
