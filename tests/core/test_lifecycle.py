# SPDX-License-Identifier: MIT

import math

import pytest

from burst.core.lifecycle import EDGES, apply
from burst.model.burst import Result, State
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from tests.builders import T0
from tests.lifecycles import WHOLE_WAY, run


def test_the_end_is_entered_from_reap_only_and_never_left():
    into = {of for (of, _), to in EDGES.items() if to is State.INACTIVE}

    assert into == {State.REAP}
    assert not [edge for edge in EDGES if edge[0] is State.INACTIVE]


@pytest.mark.parametrize(
    ("kind", "result"),
    [
        ("canceled", Result.CANCELED),
        ("timeout", Result.TIMEOUT),
        ("capacity", Result.FAILED),
        ("lost", Result.FAILED),
    ],
)
def test_an_exception_sends_every_live_state_to_reap(kind, result):
    for names in ((), ("provision-start",), WHOLE_WAY[:2], WHOLE_WAY[:4]):
        burst = run(*names)
        event = Event(T0 + 99, "exception", {"type": kind, "note": ""})
        burst = apply(burst, event)

        assert burst.state is State.REAP
        assert burst.result is result


def test_notes_are_remembered():
    burst = run("provision-start", "assign", "joined")
    assert burst.jobs == {1, 2}
    assert burst.joined_ranks == {2}

    burst = run("provision-start", "provision-finish", "online", "lost")
    assert burst.lost_since == T0 + 4
    assert burst.expected == {2, 3}
    assert apply(burst, Event(T0 + 9, "back")).lost_since is None
    burst = run("provision-start", "exception", "rank-drain")
    assert burst.drained == {2}


def test_only_what_runs_ends_the_idleness_of_a_burst():
    """A job that counts on it and starts elsewhere, or ends before, does not."""
    burst = run("provision-start", "provision-finish", "online")
    for job in sorted(burst.jobs):
        context = {"id": format_f58(job), "note": "elsewhere"}
        burst = apply(burst, Event(T0 + 3, "job-leave", context))
    burst = apply(burst, Event(T0 + 4, "idle", {"keep": 90.0}))
    assert (burst.idle_since, burst.keep_idle) == (T0 + 4, 90.0)
    busy = apply(burst, Event(T0 + 9, "busy"))
    assert (busy.idle_since, busy.keep_idle) == (None, math.inf)
    job = {"id": format_f58(JobId(7)), "note": "elsewhere", "result": "canceled"}

    counts = apply(burst, Event(T0 + 5, "assign", {"jobs": {job["id"]: T0}}))
    assert counts.idle_since is None
    for end in ("job-leave", "job-finish"):
        assert apply(counts, Event(T0 + 6, end, job)).idle_since == T0 + 4
        ran = apply(counts, Event(T0 + 6, "job-start", job))
        assert apply(ran, Event(T0 + 7, end, job)).idle_since is None
        assert "idle" not in [event.name for event in ran.events]


@pytest.mark.parametrize(
    ("names", "event", "why"),
    [
        ((), "drained", "unexpected event drained in state new"),
        ((), "nosuch", "unexpected event nosuch in state new"),
        (WHOLE_WAY, "reaped", "unexpected event reaped in state inactive"),
        (("exception",), "exception", "unexpected event exception in state reap"),
    ],
)
def test_what_the_table_does_not_have_quarantines(names, event, why):
    burst = run(*names, event)

    assert burst.quarantined == why
    assert burst.state is run(*names).state
    assert apply(burst, Event(T0 + 99, "unquarantine")).quarantined == ""


def test_an_event_that_cannot_be_read_quarantines():
    burst = apply(run("provision-start"), Event(T0, "joined", {"ranks": "x"}))

    assert "event joined cannot be read" in burst.quarantined
    burst = apply(run("provision-start"), Event(T0, "assign", {"jobs": 7}))
    assert "event assign cannot be read" in burst.quarantined
