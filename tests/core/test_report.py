# SPDX-License-Identifier: MIT
import pytest

from burst.core import job_report, lifecycle, orphans, report
from burst.core.provider_health import Outcome, Verb
from burst.core.records import Records
from burst.core.world import Halt, LastCall, ProviderView
from burst.model.active_job import ActiveJob, picture_of
from burst.model.decision import Decision, OfferRejection, clock_time
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from burst.model.lead import JobState, QueueView
from burst.model.reason import Reason
from burst.model.shape import Shape
from burst.provider import BurstStatus, Phase
from tests.builders import T0, but, job, view, whole, world
from tests.lifecycles import LEASE

FAILED = Event(T0 + 30, "exception", {"type": "failed", "note": "exited with status 3"})
DRAINED = (
    Event(T0 + 27, "provision-finish", {}),
    Event(T0 + 28, "online", {"ranks": "2-3"}),
    Event(T0 + 29, "drain", {"ranks": "2-3", "result": "completed", "note": "idle"}),
    Event(T0 + 30, "drained", {"ranks": "2-3"}),
)


def made(*events):
    """A burst made 20 s after T0 for a job submitted 5 s before."""
    lease = but(LEASE, created=T0 + 20)
    burst = lifecycle.begin(lease, {JobId(1): T0 + 15}, T0 + 20)
    for event in (Event(T0 + 25, "provision-start", {}), *events):
        burst = lifecycle.apply(burst, event)
    assert not burst.quarantined
    return burst


def row(burst):
    """What `burst status` shows while the provider deletes the burst."""
    status = BurstStatus(
        burst_id=burst.id, phase=Phase.ENDING, why="2 processes have not ended yet"
    )
    told = ProviderView(statuses={burst.id: status}, read_at=T0)
    lead = view(drained={2: "burst", 3: "burst"})
    seen = but(world(lead), providers={"local": told})
    return report.burst_row(burst, seen, T0 + 40)


def test_a_row_says_when_its_first_job_came_and_counts_stages_from_then():
    found = row(made())

    assert found["t_submit"] == T0 + 15
    assert found["timeline"] == {"submit": 0.0, "provision": 10.0}


def test_a_burst_that_was_asked_for_begins_when_it_was_made():
    lease = but(LEASE, created=T0 + 20)

    assert row(lifecycle.begin(lease, {}, T0 + 20))["t_submit"] == T0 + 20


OVERDUE = Event(T0 + 35, "overdue", {"note": "reap: it hangs"})
STILL = "the provider is still deleting it"
RETRIED = Event(T0 + 36, "retry", {"call": "reap", "note": "no route", "attempt": 1})
GONE = Event(T0 + 39, "reaped", {})


@pytest.mark.parametrize(
    ("events", "note"),
    [
        (DRAINED, "2 processes have not ended yet"),
        ((FAILED,), "exited with status 3"),
        ((FAILED, RETRIED), "exited with status 3"),
        ((FAILED, OVERDUE, RETRIED), f"exited with status 3; {STILL}"),
        ((FAILED, OVERDUE, RETRIED, GONE), "exited with status 3"),
        ((*DRAINED, RETRIED, GONE), "idle"),
    ],
)
def test_a_note_says_why_a_burst_ended_or_why_that_takes_too_long(events, note):
    assert row(made(*events))["note"] == note


BUSY = "jobs still run on rank 3; they are not killed"
BOTH = {2: "burst", 3: "burst"}


def note_of(events, call=None, online=(2, 3), **lead):
    seen = world(view(online=online, **lead))
    calls = {LEASE.id: call} if call else {}
    seen = but(seen, calls=calls)
    return report.burst_row(made(*events), seen, T0 + 40)["note"]


@pytest.mark.parametrize("events", [DRAINED, (FAILED,), (FAILED, OVERDUE)])
def test_a_note_says_until_when_a_provider_asked_for_a_pause(events):
    closed = LastCall(
        verb=Verb.REAP,
        outcome=Outcome.TRANSIENT,
        note="closed",
        done_at=T0 + 40,
        retry_at=T0 + 340,
    )
    again = f"it is called again at {clock_time(T0 + 340)}"
    found = note_of(events, closed, online=(), drained=BOTH)
    assert found.endswith(f"closed; as that asks for a pause, {again}")
    soon = note_of(events, but(closed, retry_at=T0 + 41), online=(), drained=BOTH)
    assert soon.endswith(("closed", "exited with status 3"))


def test_a_note_names_at_once_what_of_the_lead_a_deletion_waits_for():
    gone = LastCall(verb=Verb.REAP, outcome=Outcome.NOT_FOUND)

    assert note_of(DRAINED, drained=BOTH, busy=(0, 3)) == f"idle; {BUSY}"
    assert note_of((FAILED,), drained=BOTH, busy=(3,), online=(2,)) == (
        "exited with status 3; Flux still has jobs on offline rank 3; flux"
        " cancel ends those that run on no other node"
    )
    # Of a job that has lost a node, the note does not say to cancel it.
    assert note_of((FAILED,), drained=BOTH, busy=(2, 3), online=(2,)) == (
        "exited with status 3; jobs still run on rank 2; they are not killed"
    )
    assert note_of((FAILED,), drained={2: "x"}) == (
        "exited with status 3; waiting for rank 3 to be drained"
    )
    assert note_of((FAILED,), gone, drained=BOTH) == (
        "exited with status 3; the provider does not show it any more, but the lead"
        " shows ranks 2-3 as online; see flux overlay status"
    )
    assert note_of((FAILED,), drained=BOTH) == "exited with status 3"


def test_a_note_names_what_a_late_burst_waits_for_now_and_not_what_was_before():
    overdue = Event(T0 + 35, "overdue", {"note": f"reap: {BUSY}"})
    refused = LastCall(verb=Verb.REAP, outcome=Outcome.TRANSIENT, note="no route")
    late = (FAILED, overdue)

    assert note_of(late, drained=BOTH, busy=(3,)) == f"exited with status 3; {BUSY}"
    assert note_of(late, drained=BOTH) == f"exited with status 3; {STILL}"
    assert note_of(late, refused, drained=BOTH) == "exited with status 3; no route"
    assert note_of(DRAINED, drained=BOTH) == "idle"
    drains = (*DRAINED[:-1], Event(T0 + 29, "overdue", {"note": f"drain: {BUSY}"}))
    assert note_of(drains, drained=BOTH, busy=(3,)) == f"idle; {BUSY}"
    assert note_of((*drains, DRAINED[-1]), drained=BOTH) == "idle"
    waits = Event(T0 + 30, "overdue", {"note": "run: its program has not ended"})
    assert note_of((*DRAINED[:2], waits)) == "run: its program has not ended"


def test_a_job_for_which_nothing_is_begun_as_nothing_can_be_stored_is_told_so():
    lead = view(job(1, whole(4)), job(2, whole(1), state=JobState.RUN))
    full = Halt("writing to the store", T0, "No space left on device", "")
    seen = but(world(lead), halt=full)
    judged = {JobId(1): Decision(Reason.TURNED_DOWN)}

    def why(number: int, decisions: dict[JobId, Decision], *, guest: bool) -> str:
        asked = JobId(number)
        found = job_report.explain(Records(), seen, decisions, asked, guest=guest)
        assert found
        return str(found["why"])

    assert "No space left on device" in why(1, {}, guest=False)
    assert why(1, judged, guest=False).startswith(
        "every offer was turned down; writing"
    )
    assert why(1, {}, guest=True) == (
        "the daemon cannot start anything for it at present (the owner of the instance"
        " sees why)"
    )
    assert "No space" not in why(2, {}, guest=False)


def test_jobs_that_run_on_a_burst_are_its_own_or_not():
    """Flux starts any job on nodes that are up; `burst status` says what runs there."""
    online = made(*DRAINED[:2])
    (rank, *_) = online.lease.ranks
    other = job(5, whole(1), state=JobState.RUN, ranks=frozenset({rank}))
    waits = job(6, whole(1))
    seen = world(view(other, waits, online=(0, 1, *online.lease.ranks)))

    both = [format_f58(JobId(1)), format_f58(JobId(5))]
    assert report.burst_row(online, seen, T0 + 40)["jobs"] == both
    records = Records(bursts={online.id: online})
    for number, bursts in ((5, [online.id]), (6, [])):
        found = job_report.explain(records, seen, {}, JobId(number))
        assert found
        assert [told["id"] for told in found["bursts"]] == bursts


@pytest.mark.parametrize("why", ["n-0 it cannot connect to tcp://n:1", ""])
def test_of_a_lost_node_whose_next_broker_runs_it_is_told_why_it_is_not_back(why):
    lost = Event(T0 + 29, "lost", {"ranks": "2", "since": T0 + 29, "note": "evicted"})
    burst = made(*DRAINED[:2], lost)
    status = BurstStatus(burst_id=burst.id, phase=Phase.RUNNING, why=why)
    told = ProviderView(statuses={burst.id: status}, read_at=T0 + 39)
    seen = but(world(view(online=(3,))), providers={"local": told})

    assert report.burst_row(burst, seen, T0 + 40)["note"] == (
        f"evicted; {why or report.STARTED_AGAIN}"
    )


def test_an_ended_burst_shows_its_own_nodes_and_not_whose_ranks_they_are_now():
    joined = Event(T0 + 28, "joined", {"ranks": "2"})
    ended = made(joined, FAILED, GONE)
    now = but(world(view()), lead=view(online=range(6)))

    assert report.burst_row(ended, now, T0 + 90)["online"] == 1
    assert report.burst_row(made(joined), now, T0 + 90)["online"] > 1


def test_a_row_says_how_long_it_idles_and_what_it_costs():
    ended = Event(T0 + 29, "job-finish", {"id": "1"})
    found = row(made(*DRAINED[:2], ended, Event(T0 + 30, "idle")))

    assert found["idle"] == 10.0
    assert row(made(*DRAINED[:2]))["idle"] is None
    assert found["per_hour"] == 0.0


def test_of_an_orphan_it_is_said_whether_it_is_gone():
    for outcome in (Outcome.NOT_FOUND, Outcome.TRANSIENT):
        call = LastCall(verb=Verb.REAP, outcome=outcome, attempts=2, note="busy")
        found = orphans.reap_row("local", LEASE.id, call)
        assert found["gone"] is (outcome is Outcome.NOT_FOUND)
        assert (found["id"], found["attempts"]) == (LEASE.id, 2)


NONE = Records()


def active(number, state=JobState.SCHED, **changes):
    """A job of which it does not matter whether it is burstable."""
    return ActiveJob(id=JobId(number), userid=7, name="", state=state, **changes)


def test_a_job_that_is_not_burstable_waits_for_own_nodes_in_its_turn():
    waits = active(3, request=whole(2), priority=16)
    told = job_report.explain_other(waits, NONE, world(view()))
    assert (told["id"], told["userid"], told["state"]) == ("ƒ4", 7, "sched")
    assert told["verdict"] == "not-burstable"
    assert "waits its turn" in told["why"]
    assert job_report.starts_by_itself(told)
    nobody_knows = but(waits, request=None)
    told = job_report.explain_other(nobody_knows, NONE, world(view()))
    assert "waits its turn" in told["why"]


def test_while_the_lead_cannot_be_read_no_job_is_said_to_be_not_burstable():
    waits = active(3, request=whole(2), priority=16)
    told = job_report.explain_other(waits, NONE, world(None))
    assert (told["id"], told["verdict"]) == ("ƒ4", "")
    assert told["why"].startswith("the lead cannot be read now")
    assert "burst status" in told["next"]


def test_a_job_that_own_nodes_can_never_hold_and_is_not_burstable_is_told_so():
    """Its rank slots would hold it, so that Flux accepts it."""
    job = active(3, request=whole(3), priority=16)
    told = job_report.explain_other(job, NONE, world(view()))
    assert told["why"] == "own nodes can never hold it, and it is not burstable"
    assert told["next"] == "its user submits it again with --burst"
    allowed = job_report.explain_other(job, NONE, world(view()), any_job=True)
    lent = "; it may also start on lent nodes that are up"
    assert allowed == told | {"why": told["why"] + lent}


@pytest.mark.parametrize(
    ("changes", "why", "next_step"),
    [
        (
            {"queue": "night"},
            "its queue night is stopped (until six)",
            "an administrator starts the queue: flux queue start night",
        ),
        (
            {"queue": "old"},
            "the instance has no queue old",
            "its user submits it again",
        ),
        ({"priority": 0}, "its user holds it (urgency 0)", "its user releases it"),
        (
            {"state": JobState.DEPEND},
            "it waits for its dependencies, not for nodes",
            "Flux schedules it once it no longer waits for its dependencies",
        ),
        (
            {"state": JobState.RUN, "taken": {0: Shape(1), 1: Shape(2)}},
            "it runs on lead-[0-1]",
            "nobody has to act before it ends",
        ),
    ],
)
def test_of_a_job_that_is_not_burstable_it_is_said_what_it_waits_for_or_that_it_runs(
    changes, why, next_step
):
    queues = {
        "batch": QueueView(enabled=False),
        "night": QueueView(started=False, reason="until six"),
    }
    seen = world(view(queues=queues))
    waits = active(3, priority=16, queue="batch")
    # A queue that is disabled starts the jobs that it has.
    told = job_report.explain_other(waits, NONE, seen)
    assert told["verdict"] == "not-burstable"
    assert job_report.starts_by_itself(told) is True
    told = job_report.explain_other(but(waits, **changes), NONE, seen)
    assert told["why"].startswith(why)
    assert told["next"].startswith(next_step)
    expected = changes.get("state") is JobState.DEPEND
    assert job_report.starts_by_itself(told) is expected


def test_a_job_that_depends_on_others_neither_runs_nor_waits_for_nodes():
    runs = active(1, JobState.RUN, taken={0: Shape(4)})
    waits = active(2)
    picture = picture_of([runs, waits, active(3, JobState.DEPEND)])
    assert (picture.running, picture.pending) == ((runs,), (waits,))


@pytest.mark.parametrize(
    ("lead", "state"),
    [
        ({}, "free"),
        ({"online": (0, 1, 2)}, "occupied"),
        ({"drained": {2: "broken"}, "unscheduled": frozenset({3})}, "free"),
        ({"drained": dict.fromkeys(range(2, 6), "broken")}, "drained"),
        ({"unscheduled": frozenset(range(2, 6))}, "unscheduled"),
        ({"unfreed": frozenset({2})}, "unfreed"),
    ],
)
def test_a_slot_says_why_no_burst_may_have_it(lead, state):
    seen = world(view(**lead))
    rows = report.slot_rows(Records(), seen)
    assert rows[0]["state"] == state
    assert {row["state"] for row in rows[1:]} == {"free"}


def test_a_slot_says_which_ranks_a_person_has_drained():
    drained = {2: "broken", 3: "", 4: "burst: x is being taken down", 5: "broken"}
    rows = report.slot_rows(Records(), world(view(drained=drained)))
    assert rows[0]["drained"] == {"broken": "2,5", "no reason given": "3"}
    assert rows[1]["drained"] == {}
    assert report.slot_rows(Records(), world(None))[0]["drained"] == {}


def test_of_a_burst_whose_provider_is_disabled_that_is_its_note():
    burst = made(FAILED)
    seen = but(world(view()), providers={}, places={"other": ""})
    told = report.burst_row(burst, seen, T0 + 100)
    assert told["state"] == "reap"
    assert told["note"].startswith(
        f"provider {burst.lease.provider} is not enabled, so the burst cannot be seen"
    )


def test_of_a_burst_that_has_lost_ranks_the_cause_is_its_note():
    online = DRAINED[:2]
    lost = Event(T0 + 40, "lost", {"ranks": "3", "since": T0 + 40, "note": "x is gone"})
    seen = world(view(online={2}))
    assert report.burst_note(made(*online, lost), seen) == "x is gone"


@pytest.mark.parametrize("reason", [Reason.TOO_LARGE, Reason.TURNED_DOWN])
def test_only_a_job_that_waits_is_told_what_was_not_free_when_it_was_decided(reason):
    full = OfferRejection("a/b", Reason.SLOTS_SMALL, {"most": 3, "need": 17})
    small = OfferRejection("a/b", Reason.FEW_NODES, {"most": 8, "need": 20})
    decision = Decision(reason, {"need": 20, "most": 8}, (full, small))
    told = job_report.job_row(job(1, whole(20)), decision)["refusals"]
    waits = reason is Reason.TURNED_DOWN
    shown = [full.text(), small.text()] if waits else [small.text()]
    assert [refusal["why"] for refusal in told] == shown
