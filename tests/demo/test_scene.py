# SPDX-License-Identifier: MIT
import pytest

from burst.demo.scene import Scene, changes, stage_of
from tests.demo.build import burst_row, seen

WAITS = seen(1, "held", why="it needs 9 nodes")
RUNS = seen(1, "run", why="it needs 9 nodes", hosts="burst-0-[0-1]")


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (Scene(), Scene(), []),
        (Scene(now="a"), Scene(now="a"), []),
        (Scene(now="a"), Scene(now="b"), ["b"]),
        (Scene(), Scene(jobs=(seen(1, "sched"),)), ["job ƒ2 sched"]),
        (Scene(), Scene(jobs=(WAITS,)), ["job ƒ2 held: it needs 9 nodes"]),
        (Scene(jobs=(WAITS,)), Scene(jobs=(WAITS,)), []),
        (
            Scene(jobs=(WAITS,)),
            Scene(jobs=(RUNS, seen(2, "sched"))),
            ["job ƒ2 run: burst-0-[0-1]", "job ƒ3 sched"],
        ),
        (
            Scene(),
            Scene(bursts=(burst_row(until="provision"),)),
            [
                "burst-0-abcdef: 4 nodes of local as ranks 2-5 for ƒ2",
                "burst-0-abcdef: hold after 0.01 s",
                "burst-0-abcdef: provision after 0.02 s",
            ],
        ),
        (
            Scene(bursts=(burst_row(until="provision"),)),
            Scene(bursts=(burst_row(until="joined"),)),
            ["burst-0-abcdef: joined after 0.50 s"],
        ),
        (
            Scene(bursts=(burst_row(until="drained"),)),
            Scene(bursts=(burst_row(),)),
            ["burst-0-abcdef: reaped after 3.50 s", "burst-0-abcdef: completed"],
        ),
        (
            Scene(bursts=(burst_row(until="provision"),)),
            Scene(bursts=(burst_row(until="provision", result="failed", note="no"),)),
            ["burst-0-abcdef: failed: no"],
        ),
        (
            Scene(bursts=(burst_row(),)),
            Scene(bursts=(burst_row(online=1),)),
            [],
        ),
    ],
)
def test_a_line_tells_each_thing_that_is_new_and_nothing_twice(before, after, lines):
    assert list(changes(before, after)) == lines


@pytest.mark.parametrize(
    ("until", "expected"),
    [("submit", ("submit", 0.0)), ("online", ("online", 0.75))],
)
def test_a_burst_is_at_the_last_stage_that_it_reached(until, expected):
    assert stage_of(burst_row(until=until)) == expected


@pytest.mark.parametrize(
    ("job", "ended"),
    [
        (seen(1, "completed"), True),
        (seen(1, "canceled"), True),
        (seen(1, "cleanup"), False),
        (seen(1, "held"), False),
    ],
)
def test_a_job_has_ended_once_it_has_a_result(job, ended):
    assert job.ended is ended
