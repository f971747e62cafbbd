# SPDX-License-Identifier: MIT
"""Who has the ranks of each slot, until when, and who gets them next."""

import math

from burst.core.plan.demands import Promise
from burst.core.plan.outlook import outlook
from burst.core.records import Records
from burst.model.jobid import JobId
from tests.builders import T0, but, job, view, whole, world
from tests.lifecycles import LEASE, run, with_jobs


def spans(records=None, *jobs, promises=(), planned=frozenset(), **lead):
    seen = world(view(*jobs, **lead))
    found = outlook(records or Records(), seen, promises, planned, T0)
    return [(s.slot, s.holder, s.ranks, s.begins, s.ends, s.jobs) for s in found]


def test_each_rank_is_free_closed_or_has_a_burst():
    running = job(1, whole(2), t_start=T0, duration=600.0)
    burst = run("provision-start")
    records = Records(bursts={burst.id: burst})
    closed = {9: "a disk is broken"}
    assert spans(records, running, drained=closed) == [
        ("burst-0", "burst", (2, 3), T0, T0 + 600, (1,)),
        ("burst-0", "free", (4, 5), T0, math.inf, ()),
        ("burst-1", "free", (6, 7, 8), T0, math.inf, ()),
        ("burst-1", "closed", (9,), T0, math.inf, ()),
    ]
    every = dict.fromkeys((6, 7, 8, 9), "a disk is broken")
    assert spans(drained=every)[1:] == [
        ("burst-1", "closed", (6, 7, 8, 9), T0, math.inf, ())
    ]
    # One that would be made now, one of which nobody knows the end, and an idle one.
    planned = spans(records, planned={2, 3})
    assert planned[0][1:5] == ("planned", (2, 3), T0, math.inf)
    stuck = but(burst, quarantined="why")
    assert spans(Records(bursts={LEASE.id: stuck}))[:2] == [
        ("burst-0", "closed", (2, 3), T0, math.inf, (1,)),
        ("burst-0", "free", (4, 5), T0, math.inf, ()),
    ]
    # What is left of a burst that ended is a drain of ours.
    left = spans(drained={4: "burst: burst-0-x"})
    assert left[:2] == [
        ("burst-0", "free", (2, 3, 5), T0, math.inf, ()),
        ("burst-0", "ending", (4,), T0, math.inf, ()),
    ]
    idle = with_jobs(burst)
    assert spans(Records(bursts={LEASE.id: idle}))[0][4] == T0


def test_what_a_burst_gets_and_gives_up_is_told_beside_what_it_has():
    def rows(*events, **more):
        burst = run(*events)
        found = spans(Records(bursts={burst.id: burst}), **more)
        return [(holder, ranks, jobs) for _, holder, ranks, _, _, jobs in found[:3]]

    up = ("provision-start", "provision-finish", "joined", "online")
    grown = rows(*up, "grow", planned={4})
    assert grown[:2] == [("burst", (2, 3), (1,)), ("planned", (4,), (1,))]
    # Once that has begun it has them.
    assert rows(*up, "grow")[0] == ("burst", (2, 3, 4), (1,))
    shrinks = rows(*up, "shrink")
    assert shrinks[:2] == [("burst", (2,), (1,)), ("ending", (3,), ())]


def test_promised_ranks_are_those_of_a_job_from_its_start_on():
    jobs = [job(7, whole(3), duration=60.0), job(8, whole(1))]
    promises = (
        Promise(job=JobId(7), ranks=(5, 6, 7), start=T0 + 100),
        Promise(job=JobId(8), ranks=(8,), start=0.0),
    )
    found = spans(None, *jobs, promises=promises)
    waits = Promise(job=JobId(7), ranks=(9,), start=T0 + 50, known=False)
    # Until then they are kept for it, and no time limit tells when it has them.
    kept = ("burst-1", "promised", (9,), T0, T0 + 50, (7,))
    assert kept in spans(None, *jobs, promises=[waits])
    assert [row for row in found if row[1] == "promised"] == [
        ("burst-0", "promised", (5,), T0 + 100, T0 + 160, (7,)),
        ("burst-1", "promised", (8,), T0, math.inf, (8,)),
        ("burst-1", "promised", (6, 7), T0 + 100, T0 + 160, (7,)),
    ]
