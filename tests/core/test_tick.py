# SPDX-License-Identifier: MIT
import pytest

from burst.core.actions import (
    DrainBurst,
    HoldJobs,
    ProvisionBurst,
    ReapBurst,
    UndrainBurst,
)
from burst.core.provider_health import Outcome, ProviderAnswer, Verb
from burst.core.records import Records
from burst.core.tick import KEPT_ENDED, TAGGED_KEPT_S
from burst.core.world import LastCall, World
from burst.model.burst import BurstId, State, Tag
from burst.model.hold import HoldState
from burst.model.jobid import JobId
from burst.model.lead import JobState
from burst.model.reason import Reason
from burst.provider import BurstStatus, Phase
from tests.builders import T0, but, job, view, whole, world
from tests.core.ticks import ID, hold, recorded, tick_once
from tests.lifecycles import WHOLE_WAY, leased, run

ONE = JobId(1)


def said(outcome, burst=None, verb=Verb.PROVISION, note=""):
    return ProviderAnswer(
        provider="local", verb=verb, outcome=outcome, burst=burst, note=note
    )


@pytest.mark.parametrize(
    ("changes", "reason", "text"),
    [
        (
            {"request": None, "unreadable": "its jobspec cannot be read: no version"},
            Reason.UNREADABLE,
            "its jobspec cannot be read: no version; it is left alone",
        ),
        (
            {"state": JobState.DEPEND},
            Reason.NOT_READY,
            "it waits for its dependencies, not for nodes",
        ),
        (
            {"state": JobState.PRIORITY},
            Reason.NOT_READY,
            "it waits for its priority, not for nodes",
        ),
        ({"urgency": 0}, Reason.USER_HOLD, "its user holds it (urgency 0)"),
    ],
)
def test_jobs_that_want_no_burst_are_left_alone(changes, reason, text):
    one = but(job(1, whole(4)), **changes)

    made = tick_once(world(view(one)))

    assert made.decisions[1].reason is reason
    assert made.decisions[1].text() == text
    assert made.actions == ()


def test_a_new_burst_found_on_the_books_is_started():
    made = tick_once(world(view()), recorded(run()))

    assert made.actions == (ProvisionBurst(ID),)
    assert made.records.bursts[ID].state is State.PROVISION


def test_what_runs_is_asked_for_again_until_the_call_succeeds():
    """What is up may be all that a call before the daemon's restart has made."""
    lead = world(view(online=[0, 2]))
    runs = {ID: BurstStatus(burst_id=ID, phase=Phase.RUNNING)}
    shows = but(lead.providers["local"], statuses=runs, read_at=T0)
    seen = but(lead, providers={"local": shows})

    made = tick_once(seen, recorded(run("provision-start")))

    assert made.actions == (ProvisionBurst(ID),)
    assert made.records.bursts[ID].state is State.PROVISION


def test_a_new_burst_whose_ranks_are_up_is_quarantined_and_nothing_is_done_to_it():
    made = tick_once(world(view(online=[0, 2])), recorded(run()))

    assert made.records.bursts[ID].quarantined == (
        "no rule covers what its record, Flux and its provider show"
    )
    assert made.actions == ()
    again = tick_once(world(view(online=[0, 2])), made.records)
    assert again.actions == ()
    assert again.events == ()


def test_an_answer_about_a_quarantined_burst_counts_for_its_provider_only():
    odd = run("provision-start", "drained")
    answered = but(
        world(view(job(1, whole(4)))),
        calls={ID: LastCall(verb=Verb.PROVISION, outcome=Outcome.CAPACITY, note="no")},
        answered=(
            said(Outcome.CAPACITY, BurstId("burst-7-gone")),
            said(Outcome.CAPACITY, ID),
        ),
    )

    made = tick_once(answered, recorded(odd))

    assert made.records.bursts == {ID: odd}
    assert made.records.health["local"].rows["offer/small"].failures == 1


def test_a_job_of_several_bursts_is_assigned_to_them_in_one_order():
    """So the order of events does not depend on the hash seed of the process."""
    idle, ranks = run(*WHOLE_WAY[:7]), range(2, 10)
    bursts = [leased(idle, id=BurstId(f"burst-{n}-aaaaaa"), ranks=(n,)) for n in ranks]
    runs = {"state": JobState.RUN, "t_start": T0, "ranks": frozenset(ranks)}

    made = tick_once(world(view(job(1, whole(8), **runs))), recorded(*bursts))

    assigned = [name for name, event in made.events if event.name == "assign"]
    assert assigned == [burst.lease.id for burst in bursts]


def test_a_drain_that_a_person_replaced_is_his():
    ended = run(*WHOLE_WAY[:-1])
    seen = view(drained={2: "bad memory", 3: f"burst: {ID} is being taken down"})

    made = tick_once(world(seen), recorded(ended))

    assert made.actions == (UndrainBurst(ID, frozenset({3})),)
    assert made.records.bursts[ID].drained == {3}


def test_a_drain_waits_for_the_broker_to_be_gone():
    made = tick_once(world(view(online=[2, 3])), recorded(run(*WHOLE_WAY[:-1])))

    assert made.actions == ()


def ended(number, names=WHOLE_WAY, at=T0, **lease):
    """A burst that has ended, of which the id has a number."""
    return leased(run(*names, at=at), id=BurstId(f"burst-0-{number:06x}"), **lease)


def test_old_bursts_are_forgotten_but_not_those_that_are_still_drained():
    many = [ended(n, at=T0 + n) for n in range(KEPT_ENDED + 5)]
    drained = ended(999, WHOLE_WAY[:-1], T0 + 999)
    outputs = {many[4].id: "its output"}

    known = recorded(drained, *many, outputs=outputs)
    made = tick_once(world(view(online=[2, 3])), known, now=T0 + 10_000)

    assert len(made.records.bursts) == KEPT_ENDED + 1
    assert "burst-0-000004" not in made.records.bursts
    assert "burst-0-000005" in made.records.bursts
    assert made.records.outputs == {}


@pytest.mark.parametrize(("late", "kept"), [(0.0, 2), (1.0, 0)])
def test_ended_bursts_with_a_tag_are_forgotten_once_whoever_asked_has_read_them(
    late, kept
):
    tagged = [ended(n, tag=Tag("sweep/a", 100)) for n in range(2)]
    others = [ended(n) for n in range(2, KEPT_ENDED + 2)]
    now = tagged[0].since + TAGGED_KEPT_S + late

    made = tick_once(world(view()), recorded(*tagged, *others), now=now)

    left = made.records.bursts.keys() & {burst.id for burst in tagged}
    assert len(left) == kept


def test_without_a_lead_to_read_only_what_the_provider_says_is_noted():
    known = recorded(run(*WHOLE_WAY[:4]), holds={ONE: hold(HoldState.HELD)})
    made = tick_once(world(None), known)

    assert made.decisions == {}
    assert made.actions == ()
    assert made.records.holds


@pytest.mark.parametrize(
    ("before", "job_changes", "after"),
    [
        (HoldState.HOLDING, {"urgency": 0}, HoldState.HELD),
        (HoldState.HOLDING, {"urgency": 20}, HoldState.TAKEN_BACK),
        (HoldState.HELD, {"urgency": 20}, HoldState.TAKEN_BACK),
        (HoldState.RELEASED, {"urgency": 0}, HoldState.TAKEN_BACK),
        (HoldState.HELD, {"state": JobState.RUN}, HoldState.RELEASED),
        (HoldState.RELEASED, {"state": JobState.RUN}, HoldState.RELEASED),
        (HoldState.TAKEN_BACK, {"urgency": 3}, HoldState.TAKEN_BACK),
        (HoldState.HELD, {"state": JobState.INACTIVE}, None),
    ],
)
def test_holds_follow_the_urgency(before, job_changes, after):
    one = but(job(1, whole(9)), **job_changes)

    made = tick_once(world(view(one)), Records(holds={ONE: hold(before)}))

    found = made.records.holds.get(1)
    assert (found and found.state) is after


def test_the_hold_of_a_job_that_is_not_there_any_more_is_dropped():
    made = tick_once(world(view()), Records(holds={ONE: hold(HoldState.HELD)}))
    assert made.records.holds == {}


def test_a_job_released_to_a_burst_that_was_lost_is_held_again_with_its_urgency():
    lost = run("provision-start", "provision-finish", "online", "lost")
    one = job(1, whole(2), urgency=31)

    known = recorded(lost, holds={ONE: hold(HoldState.RELEASED, urgency=12)})
    made = tick_once(world(view(one, online=[0, 1, 3])), known)

    held = but(hold(HoldState.HOLDING, 12, T0 + 100), expected_urgency=31)
    assert made.records.holds[1] == held
    # While the lead has not done so, what it shows is no wish of the user.
    again = tick_once(world(view(one, online=[0, 1, 3])), made.records, now=T0 + 200)
    assert again.records.holds[1] == but(held, since=T0 + 200)
    assert HoldJobs((ONE,)) in again.actions


def test_a_burst_with_jobs_has_no_room_where_sharing_is_off():
    up = run("provision-start", "provision-finish", "online")
    two = job(2, whole(1), urgency=16)
    seen = world(view(job(1, whole(1)), two, online=[0, 1, 2, 3], busy=(0, 1)))

    shared = tick_once(seen, recorded(up))
    alone = tick_once(seen, recorded(up), plan={"share": False})

    assert shared.decisions[2].reason is Reason.ASSIGNED
    assert alone.decisions[2].reason is Reason.PROPOSED


def test_jobs_ended_while_nobody_looked_are_noted_with_their_times():
    up = run("provision-start", "provision-finish", "online")
    times = {"t_start": T0 + 50, "t_finish": T0 + 60, "result": "completed"}
    over = job(1, whole(2), state=JobState.INACTIVE, **times)

    made = tick_once(world(view(over, online=[0, 1, 2, 3])), recorded(up))

    assert [(e.name, e.timestamp - T0) for _, e in made.events] == [
        ("joined", 100),
        ("job-start", 50),
        ("job-finish", 60),
        ("idle", 100),
    ]
    assert made.events[2][1].context == {"id": "ƒ2", "result": "completed"}


def told(outcome):
    """A world in which the provider has just answered the call for a burst."""
    call = LastCall(verb=Verb.PROVISION, outcome=outcome, note="is being made")
    seen = world(view(job(1, whole(2)), busy=(0, 1)))
    return but(seen, calls={ID: call}, answered=(said(outcome, ID),))


def test_an_answer_that_comes_when_the_burst_went_on_is_not_noted():
    joining = run("provision-start", "provision-finish")

    made = tick_once(told(Outcome.TRANSIENT), recorded(joining), now=T0 + 5)

    assert "retry" not in [event.name for _, event in made.events]


def test_what_a_provider_waits_for_is_an_event_once():
    """Making a cluster takes minutes, and is asked for every other second."""
    records = recorded(run("provision-start"))
    seen = told(Outcome.TRANSIENT)

    def notes(after: float, note: str) -> list[str]:
        nonlocal records
        known = but(seen, calls={ID: but(seen.calls[ID], note=note)})
        made = tick_once(known, records, now=T0 + 5 + after)
        records = made.records
        return [e.context["note"] for _, e in made.events if e.name == "retry"]

    assert len(notes(0, "is being made")) == 1
    assert not notes(2, "is being made")
    assert len(notes(4, "gets its image")) == 1
    assert not notes(6, "gets its image")


def test_a_burst_that_no_job_needs_is_ended_before_it_is_started():
    started = leased(run("provision-start", "job-finish"), userids=(100,))

    burst = tick_once(world(view()), recorded(started), now=T0 + 5).records.bursts[ID]

    assert burst.state is State.REAP
    assert burst.events[2].context["note"] == "no job needs it any more"


def test_a_drain_that_somebody_undid_is_done_again():
    draining = run(*WHOLE_WAY[:8])

    seen = world(view(online=[2, 3], drained={3: "mine"}))
    made = tick_once(seen, recorded(draining))

    again = DrainBurst(frozenset({2}), f"burst: {ID} is being taken down")
    assert made.actions == (again,)
    assert [event.name for _, event in made.events] == ["joined"]


def test_a_drain_that_takes_too_long_says_why():
    draining = run(*WHOLE_WAY[:8])
    late = T0 + 9_000

    made = tick_once(world(view(online=[2, 3])), recorded(draining), now=late)
    again = tick_once(world(view(online=[2, 3])), made.records, now=late + 10)

    note = made.events[-1][1].context["note"]
    assert note == "drain: waiting for ranks 2-3 to be drained"
    assert [event.name for _, event in again.events] == []


@pytest.mark.parametrize(("events", "state"), [(8, "drain"), (9, "reap")])
def test_past_its_deadline_a_burst_names_the_ranks_whose_jobs_it_waits_for(
    events, state
):
    waiting = recorded(run(*WHOLE_WAY[:events]))
    seen = world(view(online=[2, 3], busy=[3], drained={2: "x", 3: "x"}))

    made = tick_once(seen, waiting, now=T0 + 9_000)

    assert [event.context.get("note") for _, event in made.events][-1] == (
        f"{state}: jobs still run on rank 3; they are not killed"
    )


def test_a_job_that_flux_keeps_on_a_rank_that_is_gone_does_not_keep_the_others():
    failed = run("provision-start", "provision-finish", "joined", "online", "exception")
    seen = world(view(online=[2], busy=[3], drained={2: "x", 3: "x"}))
    limit = 120.0

    def reaps(now: float, seen: World) -> bool:
        made = tick_once(seen, recorded(failed), now=now)
        return ReapBurst(ID) in made.actions

    # At first the lead may still be about to end the job, as its node is lost.
    assert not reaps(failed.since + limit, seen)
    assert reaps(failed.since + limit + 1, seen)
    # Of a job with a node that is online it is not known that it runs nowhere.
    both = world(view(online=[2], busy=[2, 3], drained={2: "x", 3: "x"}))
    assert not reaps(failed.since + 9_000, both)


def test_jobs_that_could_run_here_once_are_not_held_while_nothing_else_is_to_be_had():
    two = job(1, whole(2)), job(2, whole(2))

    made = tick_once(world(view(*two, busy=(0, 1))), limits={"max_nodes": 1})

    assert made.actions == ()
    assert made.decisions[2].reason is Reason.TURNED_DOWN
