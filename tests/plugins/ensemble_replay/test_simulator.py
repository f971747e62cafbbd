# SPDX-License-Identifier: MIT
"""Ensembles in simulation: nodes that boot and are drained, and what is paid."""

from __future__ import annotations

import asyncio
import math
import threading
from typing import Any

import pytest
from burst_ensemble.algorithm import MemberDecision, MemberView, Memory
from burst_ensemble.config.spec import EnsembleLimits, EnsembleSpec, JobSpec
from burst_ensemble.core.algorithms import BUILT_IN
from burst_ensemble.core.intents import JobRef
from burst_ensemble.core.job_rows import SizedReading
from burst_ensemble.core.record import MemberRecord
from burst_ensemble_replay.member import (
    NodeTimes,
    SimulatedIsolatedMember,
    SimulatedJob,
    SimulatedMember,
)
from burst_ensemble_replay.simulator import (
    START,
    EnsembleSimulator,
    Workload,
    drawn_job,
)
from burst_replay.trace import TraceJob

from burst.config import convert
from tests.plugins.ensemble.core.ensembles import ensemble, jobs, member

TIMES = NodeTimes(boot=100.0, teardown=10.0, price=2.0)


def seen_of(made: SimulatedMember) -> SizedReading:
    """What is read of a member of which nothing was known."""
    return made.read(MemberRecord(started=0.0), 0.0).reading


def one(nodes: int) -> SimulatedMember:
    made = SimulatedMember(TIMES)
    made.resize(nodes, 0.0)
    return made


def test_nodes_are_paid_from_the_request_to_the_end_of_their_tear_down() -> None:
    made = one(2)
    made.advance(100.0)
    assert (made.up, seen_of(made).nodes_free) == (2, 2)
    made.resize(0, 160.0)
    assert (made.up, made.nodes_paid) == (0, 2)
    made.advance(1000.0)
    assert made.nodes_paid == 0
    assert made.paid == 2 * 170.0
    assert seen_of(made).spent == pytest.approx(340 * 2 / 3600)


def test_jobs_start_in_order_and_a_large_one_waits_for_all_its_nodes() -> None:
    made = one(3)
    for nodes in (2, 3, 1):
        made.submit(SimulatedJob("x", nodes, 50.0), 0.0)
    made.advance(120.0)
    seen = seen_of(made)
    assert (seen.queue.run, seen.waiting, seen.next_jobs) == (1, {3: 1, 1: 1}, (3, 1))
    made.advance(1000.0)
    assert [job.start for job in made.started] == [100.0, 150.0, 200.0]
    member = made.read(MemberRecord(started=0.0), 0.0).member
    assert member.statistics["x"].events == {"submit": 3, "start": 3, "finish": 3}
    assert made.needed == 50.0 * 6


def test_a_job_that_runs_keeps_its_nodes_until_it_ends() -> None:
    made = one(3)
    made.submit(SimulatedJob("x", 2, 50.0), 0.0)
    made.advance(110.0)
    made.resize(1, 110.0)
    assert (made.up, seen_of(made).nodes_up, seen_of(made).nodes_free) == (2, 1, 0)
    made.submit(SimulatedJob("x", 1, 5.0), 111.0)
    made.advance(149.0)
    assert seen_of(made).queue.sched == 1
    made.advance(151.0)
    assert (made.up, made.busy) == (1, 1)


def test_each_job_of_an_isolated_member_boots_nodes_of_its_own() -> None:
    made = SimulatedIsolatedMember(TIMES)
    for nodes in (2, 5, 2, 1):
        made.submit(SimulatedJob("x", nodes, 50.0), 0.0)
    made.resize(3, 0.0)
    # The one of five is larger than the member; the third has no room yet.
    assert made.nodes_paid == 2
    made.advance(120.0)
    made.resize(3, 120.0)
    seen = seen_of(made)
    assert (seen.nodes_paid, seen.size, seen.nodes_up, seen.nodes_free) == (2, 2, 2, 0)
    assert (seen.queue.run, seen.next_jobs) == (1, (5, 2, 1))
    made.advance(165.0)
    made.resize(3, 165.0)
    assert made.nodes_paid == 3
    made.advance(300.0)
    assert [job.start for job in made.started] == [100.0, 265.0, 265.0]
    made.advance(400.0)
    made.resize(5, 400.0)
    made.advance(450.0)
    made.end(450.0)
    made.advance(1000.0)
    assert (made.nodes_paid, len(made.started), len(made.waiting)) == (0, 3, 0)
    assert made.paid == 2 * 160 + 3 * 160 + 5 * 60


def test_what_boots_is_given_back_first_and_a_drained_node_comes_back() -> None:
    made = one(2)
    made.advance(100.0)
    made.submit(SimulatedJob("x", 2, 500.0), 100.0)
    made.resize(4, 110.0)
    made.resize(1, 120.0)
    assert made.nodes_paid == 4  # two busy, two that are torn down
    made.resize(2, 130.0)
    assert (seen_of(made).nodes_up, made.size) == (2, 2)
    made.end(140.0)
    made.advance(2000.0)
    assert (made.nodes_paid, made.busy) == (0, 0)


def simulated(spec: EnsembleSpec, workload: Workload, **options: Any) -> Any:
    kind = BUILT_IN["workload-demand"]
    algorithm = kind(convert(kind.Options, options, "x"))
    algorithms = {each.name: {"workload-demand": algorithm} for each in spec.members}
    return EnsembleSimulator(spec, algorithms, TIMES, workload)


def test_an_ensemble_runs_its_jobs_and_ends() -> None:
    spec = ensemble(member(jobs=(jobs("x", count=6, nodes=2),)))
    outcome = simulated(spec, Workload()).run()
    (found,) = outcome.members
    needed = found.needed_node_hours
    assert (found.jobs, needed) == (6, pytest.approx(6 * 2 * 600 / 3600))
    assert found.paid_node_hours > needed
    assert found.money == 2.0 * found.paid_node_hours
    assert found.changes >= 1
    assert found.end == "it has been idle for 100 s"
    assert outcome.why == "all members have ended"


def test_jobs_arrive_at_the_member_that_is_least_loaded_and_can_run_them() -> None:
    spec = ensemble(member("a", max=2), member("b"))
    arrivals = [TraceJob(10.0, 60.0, cores, 60.0) for cores in (4, 3, 17, 33)]
    simulator = simulated(spec, Workload(arrivals, 4), disableTermination="yes")
    outcome = simulator.run()
    assert [(each.name, each.jobs) for each in outcome.members] == [("a", 1), ("b", 2)]
    assert outcome.refused == 1
    assert all(not each.end for each in outcome.members)
    assert simulator.record.ended is None


def test_it_can_be_stopped_and_what_comes_too_late_is_told() -> None:
    told: list[float] = []
    late = Workload([TraceJob(9000.0, 60.0, 1, 60.0)])
    outcome = simulated(ensemble(), late).run(50.0, told.append)
    assert told == [0.0, 10.0, 20.0, 30.0, 40.0]
    assert outcome.refused == 1


class _Raising:
    """Raises until its work is mended, and notes when and on which thread."""

    def __init__(
        self, mended: float = math.inf, error: type[BaseException] = ValueError
    ) -> None:
        self.mended = mended
        self.error = error
        self.at: list[float] = []
        self.threads: set[threading.Thread] = set()

    def decide(self, view: MemberView, memory: Memory, now: float) -> MemberDecision:
        self.at.append(now - START)
        self.threads.add(threading.current_thread())
        if self.at[-1] < self.mended:
            raise self.error("no")
        return MemberDecision(nodes=1)


def raising(algorithm: _Raising, **limits: Any) -> EnsembleSimulator:
    spec = ensemble(jobs=(jobs("x"),), limits=convert(EnsembleLimits, limits, ""))
    return EnsembleSimulator(spec, {"m": {"a": algorithm}}, TIMES, Workload())


@pytest.mark.parametrize("error", [ValueError, SystemExit, asyncio.CancelledError])
def test_an_algorithm_that_raises_is_set_apart(
    caplog: pytest.LogCaptureFixture, error: type[BaseException]
) -> None:
    algorithm = _Raising(error=error)
    (found,) = raising(algorithm).run(300.0).members
    told = f"a: it raised {error.__name__}('no')"
    assert (found.nodes, found.trouble) == (0, told)
    assert algorithm.at == [0, 60, 120, 240]
    assert caplog.text.count("Traceback") == 1


def test_a_fault_is_told_also_of_a_member_that_a_limit_ended() -> None:
    (found,) = raising(_Raising(), time=120).run().members
    assert found.trouble == "a: it raised ValueError('no')"
    assert found.end == "[limits] time: 2m have passed"


def test_of_few_waits_the_longest_is_p95() -> None:
    spec = ensemble(member(max=1, jobs=(jobs("x", count=3),)))
    (found,) = simulated(spec, Workload()).run().members
    assert found.p95_wait_s > found.mean_wait_s > 0


def test_it_can_be_interrupted_in_an_algorithm() -> None:
    with pytest.raises(KeyboardInterrupt):
        raising(_Raising(error=KeyboardInterrupt)).run(300.0)


def test_no_real_time_counts_for_an_algorithm() -> None:
    algorithm = _Raising(mended=100.0)
    (found,) = raising(algorithm).run(300.0).members
    assert (found.nodes, found.trouble) == (1, "")
    # Nobody waits for it with a limit, as the daemon does.
    assert algorithm.threads == {threading.current_thread()}


def test_a_job_of_the_file_runs_within_its_limit_and_may_fail() -> None:
    make = drawn_job(1, 0.5)
    made = [make(JobSpec(name="x"), JobRef("x", n)) for n in range(200)]
    assert made == [make(JobSpec(name="x"), JobRef("x", n)) for n in range(200)]
    assert all(120 <= job.run_time <= 1200 for job in made)
    assert 60 < sum(job.succeeds for job in made) < 140
