# SPDX-License-Identifier: MIT
import json

import msgspec
import pytest

from burst.demo.parts import HUGE, LARGE, LOCAL, SMALL
from burst.demo.record import Act, Left, Record
from tests.demo.build import TIMELINE, burst_row, seen

NOTHING = Left(0, 0, 0)
ACTS = (
    Act(
        part=LOCAL,
        job=seen(1, "completed", hosts="lead-[0-1]"),
        output="lead-0\nlead-1\n",
    ),
    Act(
        part=LARGE,
        job=seen(2, "completed", nodes=4),
        output="burst-0-0\nburst-0-1\nburst-0-2\nburst-0-3\n",
    ),
    Act(part=SMALL, job=seen(3, "completed"), output="burst-1-0\nburst-1-1\n"),
    Act(part=HUGE, job=seen(4, "canceled", nodes=9, word="impossible", why="no")),
)
GOOD = Record(
    lead="embedded",
    acts=ACTS,
    bursts=(burst_row(0, 4), burst_row(1, 2)),
    left=NOTHING,
)
UNTOLD = Act(part=HUGE, job=seen(4, "canceled", word="waiting", why="later"))


def but(**fields):
    return msgspec.structs.replace(GOOD, **fields)


@pytest.mark.parametrize(
    ("record", "faults"),
    [
        (GOOD, []),
        (but(acts=()), ["0 of 4 jobs were submitted"]),
        (but(acts=ACTS[:3]), ["3 of 4 jobs were submitted"]),
        (
            but(acts=(*ACTS[:3], UNTOLD)),
            ["job ƒ5 of 9 nodes was not told why it waits"],
        ),
        (
            but(acts=(ACTS[0], Act(part=LARGE, job=seen(2, "failed")), *ACTS[2:])),
            ["job ƒ3 of 4 nodes is failed, not completed"],
        ),
        (but(bursts=()), ["two bursts of 4 and 2 nodes were to be made, not: none"]),
        (
            but(bursts=(burst_row(0, 4), burst_row(1, 4))),
            ["two bursts of 4 and 2 nodes were to be made, not: 4, 4"],
        ),
        (
            but(bursts=(burst_row(0, 4, until="finished"), burst_row(1, 2))),
            [
                "burst burst-0-abcdef was never drained, reaped",
                "burst burst-0-abcdef ended as None",
            ],
        ),
        (
            but(bursts=(burst_row(0, 4, result="failed", note="x"), burst_row(1, 2))),
            ["burst burst-0-abcdef ended as failed (x)"],
        ),
        (
            but(left=Left(1, 2, 3)),
            ["1 followers were left", "2 slots were left", "3 files were left"],
        ),
        (
            but(acts=(), left=Left(1, 0, 0), failure="lead-0 ended"),
            ["lead-0 ended", "1 followers were left"],
        ),
    ],
)
def test_whatever_is_not_as_it_should_be_is_a_sentence(record, faults):
    assert record.faults() == faults


def test_the_object_has_what_the_story_came_to_and_nothing_else():
    found = json.loads(json.dumps(GOOD.as_json()))

    assert found == {
        "ok": True,
        "lead": "embedded",
        "mode": "hold",
        "jobs": [
            {
                "id": id_,
                "nodes": act.part.nodes,
                "state": act.job.state,
                "output": act.output,
            }
            for id_, act in zip(("ƒ2", "ƒ3", "ƒ4", "ƒ5"), ACTS, strict=True)
        ],
        "bursts": [
            {
                "id": f"burst-{slot}-abcdef",
                "provider": "local",
                "ranks": ranks,
                "result": "completed",
                "timeline": TIMELINE,
            }
            for slot, ranks in ((0, "2-5"), (1, "6-7"))
        ],
        "left": {"followers": 0, "slots": 0, "files": 0},
    }


def test_the_object_is_not_ok_where_there_is_a_fault():
    assert but(failure="lead-0 ended").as_json()["ok"] is False
