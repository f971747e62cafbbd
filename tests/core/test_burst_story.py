# SPDX-License-Identifier: MIT
"""The story of a burst in words."""

from burst.core import lifecycle
from burst.core.burst_story import SENTENCES, burst_story, next_step_of, sentence
from burst.core.records import Records
from burst.core.resizing import growth_end
from burst.model.burst import Burst, Isolated, Tag
from burst.model.decision import clock_time, moment
from burst.model.event import Event
from burst.model.jobid import JobId, format_f58
from tests.builders import T0, but, settings, world
from tests.lifecycles import LEASE, leased, run

ONLINE = ("provision-start", "provision-finish", "online")
WORLD = world(None)


def test_each_event_that_there_is_has_a_sentence() -> None:
    names = {name for _, name in lifecycle.EDGES} | lifecycle.NOTES.keys()
    assert set(SENTENCES) == names
    for name in names:
        assert sentence(Event(T0, name)), name
    # A later version may have left others.
    assert sentence(Event(T0, "melted")) == "melted"


def test_it_is_told_in_order_with_durations_sums_and_cost() -> None:
    lease = but(LEASE, created=T0, price=3.6)
    burst = lifecycle.begin(lease, {JobId(1): T0, JobId(2): T0}, T0)
    for seconds, name, context in (
        (1, "provision-start", {}),
        (2, "provision-finish", {}),
        (4, "joined", {"ranks": "2-3"}),
        (7, "online", {"ranks": "2-3"}),
        (8, "job-start", {"id": format_f58(JobId(1))}),
        (18, "job-finish", {"id": format_f58(JobId(1)), "result": "completed"}),
        (20, "exception", {"type": "lost", "note": "ranks were lost"}),
        (21, "reaped", {}),
    ):
        burst = lifecycle.apply(burst, Event(T0 + seconds, name, context))
    found = burst_story(Records(), burst, settings(), WORLD, T0 + 100)
    assert [event["text"] for event in found["events"]] == [
        "it was planned",
        "its provider is called to make it",
        "all its followers were started",
        "ranks 2-3 joined the lead",
        "it is online, with ranks 2-3",
        f"job {format_f58(JobId(1))} runs",
        f"job {format_f58(JobId(1))} ended: completed",
        "it failed or was ended (lost): ranks were lost",
        "all its resources at its provider are deleted",
    ]
    stages = {stage["stage"]: stage["seconds"] for stage in found["stages"]}
    assert stages["until all were online"] == 3.0
    assert stages["from the first job's start to the last one's end"] == 10.0
    assert "until nothing ran on it" not in stages
    assert found["ended_jobs"] == {"completed": 1}
    assert found["jobs"] == [format_f58(JobId(2))]
    assert found["cost"] == round(20 / 3600 * 3.6 * LEASE.nodes, 4)
    assert (found["state"], found["result"]) == ("inactive", "failed")


def test_a_burst_that_is_set_apart_says_so() -> None:
    burst = lifecycle.quarantine(lifecycle.begin(LEASE, {}, T0), "odd", T0 + 1)
    found = burst_story(Records(), burst, settings(), WORLD, T0 + 2)
    assert found["state"] == "quarantined"
    assert found["events"][-1]["text"].endswith("the daemon does not act on it: odd")


def test_who_acts_next_on_a_burst_and_by_when() -> None:
    until = clock_time(T0 + 1 + 60)
    limits = settings(
        deadlines=dict.fromkeys(("join", "drain", "reap"), "1m"),
        providers={LEASE.provider: {"type": "fake", "provision": "1m"}},
    )
    for events, says in (
        (("provision-start",), f"within [providers.local] provision ({until})"),
        (("provision-start", "provision-finish"), "within [deadlines] join ("),
        (ONLINE, "the daemon takes it down once nothing needs it for [deadlines]"),
        ((*ONLINE, "drain"), "after [deadlines] drain ("),
        ((*ONLINE, "exception"), "after [deadlines] reap ("),
        (
            (*ONLINE, "lost"),
            "the provider may start the lost followers again, within 2m (",
        ),
    ):
        assert says in next_step_of(run(*events), limits, WORLD, T0)
    assert next_step_of(run(*ONLINE, "exception", "reaped"), limits, WORLD, T0) == ""
    odd = lifecycle.quarantine(run(*ONLINE), "odd", T0)
    assert next_step_of(odd, limits, WORLD, T0) == (
        f"an administrator takes it down: burst down {odd.id}"
    )


def test_a_burst_out_of_its_providers_reach_waits_for_an_administrator() -> None:
    elsewhere = but(WORLD, places={LEASE.provider: "there"})
    for events, its_world in (
        (ONLINE, but(WORLD, providers={})),
        ((*ONLINE, "exception"), but(WORLD, providers={})),
        (ONLINE, elsewhere),
    ):
        burst = leased(run(*events), place="here")
        assert next_step_of(burst, settings(), its_world, T0) == (
            "an administrator enables provider local again, with the table that it had,"
            " until the burst is gone"
        )
        assert "provider local again" not in next_step_of(burst, settings(), WORLD, T0)
    ended = run(*ONLINE, "exception", "reaped")
    assert next_step_of(ended, settings(), but(WORLD, providers={}), T0) == ""


def test_of_an_online_burst_is_told_why_it_stays_and_until_when() -> None:
    limits, end = settings(deadlines={"idle": "10s"}), T0 + 3600
    up = leased(run(*ONLINE), end=end)
    idle = lifecycle.apply(up, Event(T0 + 5, "job-finish", {"id": "1"}))
    idle = lifecycle.apply(idle, Event(T0 + 5, "idle"))
    lease_ends = clock_time(end - limits.deadlines.drain)

    def told(burst: Burst, now: float = T0 + 6) -> str:
        return next_step_of(burst, limits, WORLD, now)

    assert told(idle).endswith(f"or its lease ends ({clock_time(T0 + 15)})")
    # A job waits for it, so it is kept for longer.
    assert told(idle, T0 + 16).endswith("or its lease ends")
    assert told(leased(idle, tag=Tag("mine", 7))) == (
        f"the daemon keeps it until somebody takes it down (burst down {up.id}), or its"
        f" lease ends ({lease_ends})"
    )
    for what, says in (
        (Isolated(kind="job"), "once its program has ended"),
        (Isolated(kind="service"), "keeps it"),
    ):
        assert says in told(leased(run(*ONLINE), isolated=what))
    grows = run(*ONLINE, "grow")
    assert grows.coming
    assert "makes the nodes by which it grows" in told(grows)
    assert f"({clock_time(growth_end(grows, limits))})" in told(grows)


def test_what_ends_on_another_day_is_told_with_its_day() -> None:
    limits = settings(deadlines={"join": "30h"})
    told = next_step_of(run("provision-start", "provision-finish"), limits, WORLD, T0)
    end = T0 + 2 + 30 * 3600
    assert told.endswith(f"({moment(end)[:10]} {clock_time(end)})")


def test_a_loss_of_which_nothing_was_told_yet_is_no_silence_of_the_provider() -> None:
    lost = Event(T0, "lost", {"ranks": "3", "since": T0})
    known = Event(T0, "lost", {"ranks": "3", "since": T0, "note": "b-3 was evicted"})
    assert sentence(lost) == "it lost rank 3: the cause is not known yet"
    assert sentence(known) == "it lost rank 3: b-3 was evicted"
