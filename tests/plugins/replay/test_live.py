# SPDX-License-Identifier: MIT
"""A replay of what a daemon recorded decides as that daemon did, job by job.

Both sides see the same times: see `tests.plugins.replay.recorded_run`. What the replay
is told beside the record is the machine, the order of the scheduler, the time to boot,
and the rules.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_replay.policies import Policy
from burst_replay.read_trace import read_trace
from burst_replay.simulator import replay
from burst_replay.site import NO_FILE, Site, sold_offers
from burst_replay.trace import Machine

from burst.core.jobs.rules import RuleSet
from burst.model.scheduler import Order
from tests.builders import settings
from tests.plugins.replay.recorded_run import (
    BOOT_S,
    CORES,
    LONG,
    SPARSE,
    Load,
    PlannedJob,
    RecordedRun,
    draw_jobs,
)

OWN_NODES = 4
COUNT = 125
TOLERANCE_S = 0.001


class Outcome(msgspec.Struct, frozen=True):
    """What became of one job."""

    bought: int
    """Nodes of the burst that was made for it; 0 for none."""
    wait: float


def live(jobs: Sequence[PlannedJob], record: Path, **tables: Any) -> list[Outcome]:
    """Run them with the daemon's engine, which records what happens."""
    run = RecordedRun(OWN_NODES, record, **tables)
    run.run(jobs)
    found = []
    for number, job in sorted(run.lead.jobs.items()):
        lent = not run.lead.ran_on[number] <= run.lead.own
        assert lent or number not in run.bought
        wait = job.t_start - job.t_submit
        found.append(Outcome(run.bought.get(number, 0), wait))
    return found


def replayed(record: Path, tables: Mapping[str, Any]) -> list[Outcome]:
    """Replay the record by the same settings."""
    trace = read_trace(record)
    assert not trace.left_out
    machine = Machine(OWN_NODES, CORES)
    found_in = settings(**tables)
    policy = Policy("same", RuleSet(found_in.rules))
    site = Site(
        machine,
        Order.FIFO,
        settings=found_in,
        offers=sold_offers(NO_FILE, {}, boot=BOOT_S),
        teardown=0.0,
    )
    found = replay(trace, site, policy)
    return [
        Outcome(nodes, wait)
        for nodes, wait in zip(found.made, found.waits, strict=True)
    ]


TABLES: Mapping[str, Any] = {
    "plan": {"share": False},
    "deadlines": {"idle": "0s"},
}
RULES: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "half an hour": [{"worth": 0.5, "wait": "0s"}],
    "two hours": [{"worth": 2.0, "wait": "0s"}],
    "some after a while, some at once": [
        {"match": {"nodes": ">=3"}, "worth": 0.2, "wait": "20m"},
        {"match": {"name": "app-1"}, "worth": 0.0, "wait": "0s"},
        {"worth": 1.0, "wait": "0s"},
    ],
}


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("seed", "users", "rules"),
    [
        (1, 5, "some after a while, some at once"),
        (2, 1_000_000, "two hours"),
    ],
)
def test_a_replay_decides_as_the_daemon_did(
    seed: int, users: int, rules: str, tmp_path: Path
) -> None:
    """Of few users, whose past runs and idle bursts count, or of as many as jobs."""
    tables = {**TABLES, "policy": RULES[rules]}
    compare(draw_jobs(seed, COUNT, OWN_NODES, users), tables, tmp_path / "jobs")


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("seed", "load", "rules"),
    [
        (8, LONG, "half an hour"),
        (4, SPARSE, "half an hour"),
        (1, SPARSE, "some after a while, some at once"),
    ],
)
def test_jobs_that_start_later_than_was_expected_are_judged_again(
    seed: int, load: Load, rules: str, tmp_path: Path
) -> None:
    """Where for an hour none is submitted or ends, as most run for hours.

    Those behind a job that leaves are judged as if it did not wait: no event soon
    after would put it right.
    """
    tables = {**TABLES, "policy": RULES[rules]}
    compare(draw_jobs(seed, 100, OWN_NODES, 5, load), tables, tmp_path / "jobs")


@pytest.mark.no_cover
@pytest.mark.parametrize("rules", RULES)
def test_idle_bursts_are_kept_for_as_long_as_the_daemon_does(
    rules: str, tmp_path: Path
) -> None:
    """For an hour, or for as long as that costs less than to make them again."""
    plan = {"share": False, "spread": False}
    kept = {"plan": plan, "deadlines": {"idle": "1h"}, "policy": RULES[rules]}
    compare(draw_jobs(1, COUNT, OWN_NODES, 5), kept, tmp_path / "jobs")


def compare(
    jobs: Sequence[PlannedJob], tables: Mapping[str, Any], record: Path
) -> None:
    """Run a workload, and replay it."""
    was = live(jobs, record, **tables)
    would_be = replayed(record, tables)
    assert len(was) == len(would_be) == len(jobs)
    differ = [
        (number, before, now)
        for number, (before, now) in enumerate(zip(was, would_be, strict=True))
        if before.bought != now.bought or abs(before.wait - now.wait) > TOLERANCE_S
    ]
    assert differ == []
    # It is no run of which nothing could be told.
    bursted = sum(1 for outcome in was if outcome.bought)
    waited = sum(1 for outcome in was if not outcome.bought and outcome.wait)
    assert bursted >= 20
    assert waited >= 8
