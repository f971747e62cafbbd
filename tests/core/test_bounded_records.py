# SPDX-License-Identifier: MIT
"""The records of a burst stay small whatever it lives through, and say all there is."""

from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burst.core.burst_story import assigned_jobs, known_events, timeline
from burst.core.lifecycle import EDGES, NOTES, apply, begin, kept, restore, step
from burst.core.records import Records
from burst.model.burst import KEPT_JOBS, Burst, State
from burst.model.event import LONGEST_NOTE, Event
from burst.model.jobid import JobId, format_f58
from burst.model.ranks import format_hostlist, format_idset
from burst.model.record import decode_job, decode_record, encode_job, encode_record
from burst.runtime.record_store import RecordStore
from tests.builders import T0
from tests.fakes import MeasuredStore
from tests.lifecycles import LEASE, run

MOST_BYTES = 64 * 1024
# As large as those that Flux gives.
FIRST_JOB = 0x7AB3C0000000000
AT_A_TIME = 8


def read_again(burst: Burst) -> Burst:
    """The burst as its records say it is."""
    jobs = {job: decode_job(encode_job(times)) for job, times in burst.times.items()}
    return restore(decode_record(encode_record(burst)), jobs)


def through(burst: Burst, jobs: list[JobId], at: float):
    """What happens to a burst while these jobs run on it together, event by event."""
    names = [format_f58(job) for job in jobs]
    yield Event(at, "assign", {"jobs": dict.fromkeys(names, at)})
    for name in ("job-hold", "job-release", "job-start", "job-finish"):
        for job in names:
            yield Event(at + 1, name, {"id": job, "result": "completed"})
    yield Event(at + 2, "idle", {})


@pytest.mark.no_cover
def test_five_thousand_jobs_leave_a_small_record_and_cost_as_much_at_the_end():
    store = MeasuredStore()
    ledger = RecordStore(store)
    burst = run("provision-start", "provision-finish", "joined", "online")
    records = Records(bursts={burst.id: burst})
    ledger.write(Records(), records)
    written: list[int] = []
    numbers = count(FIRST_JOB)
    for number in range(5_000 // AT_A_TIME):
        jobs = [JobId(next(numbers)) for _ in range(AT_A_TIME)]
        for event in through(burst, jobs, T0 + 10 * number):
            burst = apply(burst, event)
            assert len(burst.events) < 10
            # A write for each event of the first and last ticks, which are compared.
            if number < 10 or number >= 5_000 // AT_A_TIME - 10:
                after = Records(bursts={burst.id: burst})
                ledger.write(records, after)
                records = after
                written.append(store.last)
    assert store.largest < MOST_BYTES
    assert not burst.quarantined
    half = len(written) // 2
    # A time stamp or a count may have a few more digits.
    assert sum(written[half:]) < 1.1 * sum(written[:half])
    assert sum(burst.sums.results.values()) == 5_000
    assert len(burst.sums.recent) == KEPT_JOBS
    assert burst.jobs == {1}  # for which it was made, and which never came
    # What was written is what there is; no record of a job is left.
    assert RecordStore(store).load(T0 + 1e6).bursts == {burst.id: burst}
    kept = {f"burst/{burst.id}", f"job/{burst.id}/1", "meta/schema"}
    assert set(store.records) == kept


_STEPS = sorted({name for _, name in EDGES} | set(NOTES))
_JOBS = st.integers(1, 5).map(lambda number: format_f58(JobId(number)))
_RANKS = st.frozensets(st.integers(2, 9), min_size=1).map(format_idset)


@st.composite
def events(draw):
    """An event that may happen, or not, with all that any event may say."""
    context = {
        "id": draw(_JOBS),
        "jobs": dict.fromkeys(draw(st.sets(_JOBS, max_size=3)), T0),
        "ranks": draw(_RANKS),
        "result": draw(st.sampled_from(["completed", "failed"])),
        "type": draw(st.sampled_from(["timeout", "capacity", "canceled"])),
        "note": draw(st.sampled_from(["a", "b"])),
        "status": 3,
    }
    nodes = draw(st.integers(1, 4))
    context |= {"nodes": draw(st.integers(1, 4)), "before": draw(st.integers(1, 4))}
    name = draw(st.sampled_from(_STEPS))
    if name in {"grow", "grown", "shrink", "shrunk"}:
        context["ranks"] = format_idset(range(2, 2 + nodes))
        context["hosts"] = format_hostlist(f"burst-0-{n}" for n in range(nodes))
        context["online"] = format_idset(range(2, 2 + draw(st.integers(1, nodes))))
        context["requested"] = draw(st.booleans())
    if name == "idle" and draw(st.booleans()):
        context["keep"] = 90.0
    return Event(T0 + draw(st.integers(0, 1000)), name, context)


# The way to ONLINE, so that what may happen there does.
_WAY = [Event(T0, "provision-start"), Event(T0, "provision-finish")]
_WAY.append(Event(T0, "online", {"ranks": "2-3"}))


def jobs_of(history: list[Event]) -> tuple[set[str], set[str]]:
    """Jobs that count on a burst, and those that started, by all of its events."""
    jobs, started = {format_f58(JobId(1))}, set()
    for event in history:
        if event.name == "assign":
            jobs |= event.context["jobs"].keys()
        elif event.name == "job-start":
            started |= {event.context["id"]} & jobs
        elif event.name in {"job-finish", "job-leave"}:
            jobs -= {event.context["id"]}
            started -= {event.context["id"]}
    return jobs, started


@given(st.lists(events(), max_size=30))
def test_what_is_kept_derives_the_same_burst_as_all_that_happened(found):
    burst = begin(LEASE, {JobId(1): T0}, T0)
    applied = []
    for event in [*_WAY, *found]:
        # A wrong event is applied as a quarantine, and changes nothing else.
        burst, done = step(burst, event)
        applied.append(done)

    # `burst` was derived from each event in turn, the rest from those that are kept.
    assert read_again(burst) == burst
    jobs, started = jobs_of(applied)
    assert {format_f58(job) for job in burst.jobs} == jobs
    assert {format_f58(job) for job in burst.started} == started
    assert burst.times.keys() == burst.jobs


def test_what_was_reclaimed_and_came_back_is_not_reclaimed_when_it_is_read_again():
    burst = run("provision-start", "provision-finish", "joined", "online")
    for name in ("reclaimed", "back", "lost"):
        burst = apply(burst, Event(T0 + 9, name, {"note": "a", "ranks": "2"}))
    assert burst.reclaimed == ""
    assert read_again(burst) == burst


def test_ranks_that_come_one_by_one_and_flap_do_not_make_a_record_grow():
    burst = run("provision-start")
    for rank in range(2, 500):
        burst = apply(burst, Event(T0 + rank, "joined", {"ranks": str(rank)}))
    burst = apply(burst, Event(T0 + 3000, "provision-finish"))
    burst = apply(burst, Event(T0 + 3000, "online", {"ranks": "2-499"}))
    for number in range(100):
        burst = apply(burst, Event(T0 + 3000 + number, "lost", {"ranks": "7"}))
        burst = apply(burst, Event(T0 + 3000 + number, "back", {"ranks": "2-499"}))
        note = {"note": f"for the time number {number}"}
        burst = apply(burst, Event(T0 + 3000 + number, "quarantine", note))
        burst = apply(burst, Event(T0 + 3000 + number, "unquarantine", note))

    assert burst.joined_ranks == frozenset(range(2, 500))
    assert len(burst.events) < 10
    assert len(encode_record(burst)) < 4096
    assert read_again(burst) == burst
    assert timeline(burst)["joined"] == T0 + 2


@pytest.mark.parametrize("name", ["rank-drain", "undrain"])
def test_ranks_that_are_drained_one_by_one_do_not_make_a_record_grow(name):
    events: tuple[Event, ...] = ()
    for rank in range(2, 9):
        events = kept(events, Event(T0 + rank, name, {"ranks": str(rank)}))
    assert [event.context["ranks"] for event in events] == ["2", "3-8"]


def test_many_jobs_at_a_time_do_not_make_the_burst_s_record_grow():
    burst = run("provision-start", "provision-finish", "online")
    alone = len(encode_record(burst))
    jobs = {format_f58(JobId(FIRST_JOB + n)): T0 for n in range(5000)}
    burst = apply(burst, Event(T0, "assign", {"jobs": jobs}))

    assert len(burst.jobs) == 5001
    assert len(encode_record(burst)) < alone + 100
    assert read_again(burst) == burst


@pytest.mark.parametrize("name", ["exception", "quarantine"])
def test_a_free_text_is_cut_before_it_is_kept(name):
    note = "x" * 2_000_000
    event = Event(T0 + 9, name, {"type": "failed", "note": note})
    burst = apply(run("provision-start"), event)

    assert burst.events[-1].context["note"] == "x" * (LONGEST_NOTE - 1) + "…"
    assert len(burst.quarantined) <= LONGEST_NOTE
    assert len(encode_record(burst)) < 4096
    assert read_again(burst) == burst


def test_the_story_has_the_last_jobs_one_by_one_and_the_sums_have_all():
    burst = run("provision-start", "provision-finish", "online")
    for number in range(2, 40):
        for event in through(burst, [JobId(number)], T0 + 10 * number):
            burst = apply(burst, event)

    assert timeline(burst)["hold"] == T0 + 21
    assert timeline(burst)["finished"] == T0 + 391
    assert JobId(39) in assigned_jobs(burst)
    assert JobId(1) in assigned_jobs(burst)  # not known to have ended
    assert JobId(2) not in assigned_jobs(burst)
    names = [event.name for event in known_events(burst, JobId(39))]
    assert names[-5:-1] == ["job-hold", "job-release", "job-start", "job-finish"]
    assert known_events(burst, JobId(2)) == list(burst.events)


def test_of_many_jobs_that_go_on_without_a_burst_that_failed_some_are_known():
    burst = run("provision-start", "provision-finish")
    jobs = [JobId(FIRST_JOB + number) for number in range(1000)]
    times = {format_f58(job): T0 + number for number, job in enumerate(jobs)}
    events = [
        Event(T0 + 2000, "assign", {"jobs": times}),
        # One of them is seen to run although the burst is about to fail.
        Event(T0 + 2001, "job-start", {"id": format_f58(jobs[3])}),
        Event(T0 + 2002, "exception", {"type": "join", "note": "nobody came"}),
    ]
    for event in events:
        burst = apply(burst, event)
    assert len(burst.jobs & set(jobs)) == 1000
    burst = apply(burst, Event(T0 + 2003, "reaped", {}))
    assert burst.state is State.INACTIVE
    assert burst.jobs == {jobs[3], *jobs[-KEPT_JOBS + 1 :]}
    assert burst.times.keys() == burst.jobs
    assert burst.started == {jobs[3]}
    assert read_again(burst) == burst


@pytest.mark.parametrize("name", ["grow", "grown"])
def test_a_growth_voids_what_has_begun_before_and_idleness(name):
    events: tuple[Event, ...] = ()
    for old in ("online", "shrunk", "shrink", "idle", "overdue", name):
        events = kept(events, Event(T0, old, {}))
    assert [event.name for event in events] == ["online", "shrunk", name]


def grow_by_one(burst: Burst, nodes: int, at: float) -> Burst:
    """A growth of one node, from when it begins until all is online."""
    size = {
        "hosts": format_hostlist(f"burst-0-{n}" for n in range(nodes)),
        "ranks": format_idset(range(2, 2 + nodes)),
        "online": format_idset(range(2, 2 + nodes)),
        "nodes": nodes,
        "note": "by hand",
    }
    begun = {**size, "before": nodes - 1, "requested": True}
    burst = apply(burst, Event(at, "grow", begun))
    burst = apply(burst, Event(at + 1, "joined", {"ranks": str(1 + nodes)}))
    return apply(burst, Event(at + 2, "grown", size))


def test_of_many_growths_the_last_are_told_and_all_ranks():
    burst = run("provision-start", "provision-finish")
    burst = apply(burst, Event(T0 + 11, "joined", {"ranks": "2-3"}))
    burst = apply(burst, Event(T0 + 13, "online", {"ranks": "2-3"}))
    for nodes in range(3, 40):
        burst = grow_by_one(burst, nodes, T0 + 100 * nodes)

    assert burst.joined_ranks == frozenset(range(2, 41))
    sizes = [event.context["nodes"] for event in burst.events if event.name == "grown"]
    assert sizes == [36, 37, 38, 39]
    times = [event.timestamp for event in burst.events]
    assert times == sorted(times)
    assert len(burst.events) < 16
    assert read_again(burst) == burst
