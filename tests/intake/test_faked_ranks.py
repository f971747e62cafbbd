# SPDX-License-Identifier: MIT
"""A hundred nodes, more than brokers fit on one machine: schedulers over faked ranks.

The schedulers are those that Flux loads, on a handle without a broker, with the real
resource pool; what the job manager and the resource module would send is called.
"""

from __future__ import annotations

import importlib
from collections.abc import Generator
from typing import Any

import pytest

from benchmarks.order import load
from tests.flux_instance import flux_bindings
from tests.intake.user_cli import SCHEDULER

pytestmark = pytest.mark.flux

OWN = 8
LENT = 100


class Request:
    """An alloc request, and how it was answered."""

    def __init__(self) -> None:
        self.ranks: str = ""
        self.denied: str = ""
        self.canceled = False

    def success(self, pool: Any, _annotations: Any = None) -> None:
        self.ranks = str(pool.to_resource_set().ranks)

    def deny(self, note: str) -> None:
        self.denied = note

    def cancel(self) -> None:
        self.canceled = True

    def annotate(self, _annotations: Any) -> None:
        """Nobody reads them."""


class Faked:
    """An instance of 8 own nodes that are up, and 100 that may be lent."""

    def __init__(
        self,
        policy: str,
        *,
        config: dict[str, Any] | None = None,
        remembers: int = 10_000,
    ) -> None:
        flux = flux_bindings()
        importlib.import_module("flux.resource")
        self._module = load(SCHEDULER)
        self._scheduler = self._module.make_class(policy)(flux.Flux("loop://"))
        self._scheduler.remembers = remembers
        self._scheduler.keep_users_apart_by(config or {})
        last = OWN + LENT - 1
        execution = {
            "R_lite": [{"rank": f"0-{last}", "children": {"core": "0-3"}}],
            "nodelist": [f"n[0-{last}]"],
            "starttime": 0.0,
            "expiration": 0.0,
            "properties": {"burst": f"{OWN}-{last}"},
        }
        R = {"version": 1, "execution": execution}  # noqa: N806 - Flux's name for it
        self.pool = flux.resource.ResourcePool(R)
        self._scheduler._resources = self.pool
        self.pool.mark_down("all")
        self.up(f"0-{OWN - 1}")
        self._jobs = 0

    def up(self, ranks: str) -> None:
        self.pool.mark_up(ranks)
        self._scheduler.resource_update()

    def down(self, ranks: str) -> None:
        self.pool.mark_down(ranks)
        self._scheduler.resource_update()

    def lend(self, jobs: dict[str, str], ranks: str) -> None:
        told = self._module.leases.Leases({"jobs": jobs, "ranks": ranks})
        self._scheduler.lend(told)

    def submit(
        self,
        nodes: int,
        *,
        burstable: bool,
        requires: str = "",
        priority: int = 16,
    ) -> Request:
        """Submit `-N nodes`, whole ones; `requires` is a property of nodes."""
        self._jobs += 1
        slot = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}
        node = {"type": "node", "count": nodes, "exclusive": True, "with": [slot]}
        system: dict[str, Any] = {"duration": 0.0}
        if burstable:
            system["burstable"] = True
        if requires:
            system["constraints"] = {"properties": [requires]}
        jobspec = {
            "version": 1,
            "resources": [node],
            "attributes": {"system": system},
        }
        request = Request()
        self._scheduler.alloc(request, self._jobs, priority, 0, 0.0, jobspec)
        return request

    def cancel(self, job: int) -> None:
        """Cancel a job by its number, as the base class does on `sched.cancel`."""
        self._scheduler.cancel(job)

    def turn(self) -> None:
        for _ in self.steps():
            pass

    def steps(self) -> Generator[None, None, None]:
        """Schedule; events are handled where this yields, and most close it there."""
        yield from self._scheduler.schedule()

    def remembered(self) -> int:
        """Return for how many shapes of jobs it remembers something, at most."""
        return max(len(self._scheduler._sound), len(self._scheduler._fits))


@pytest.fixture(params=["fifo", "backfill"])
def faked(request: pytest.FixtureRequest) -> Faked:
    return Faked(request.param)


@pytest.mark.parametrize(
    ("table", "lent"),
    [({}, ""), ({"share_users": True}, "8-9"), ({"any_job": True}, "8-9")],
    ids=["apart", "shared", "any job"],
)
def test_lent_ranks_without_a_lease_are_nobodys_where_there_are_guests(
    table: dict[str, bool], lent: str
) -> None:
    config = {
        "access": {"allow-guest-user": True},
        "ingest": {"frobnicator": {"burst": table}},
    }
    faked = Faked("fifo", config=config)
    faked.up(f"{OWN}-{OWN + 1}")
    job = faked.submit(2, burstable=True, requires="burst")
    faked.turn()
    assert job.ranks == lent
    if not lent:
        faked.lend({"1": "8-9"}, "8-9")
        faked.turn()
        assert job.ranks == "8-9"


def test_a_job_of_a_hundred_nodes_waits_in_an_instance_of_8_and_runs(
    faked: Faked,
) -> None:
    large = faked.submit(LENT, burstable=True)
    local = faked.submit(2, burstable=False)
    faked.turn()
    assert (large.ranks, large.denied) == ("", "")
    assert local.ranks == "0-1"
    faked.up(f"{OWN}-{OWN + LENT - 2}")
    faked.turn()
    assert large.ranks == ""
    faked.up(str(OWN + LENT - 1))
    faked.turn()
    assert large.ranks == f"{OWN}-{OWN + LENT - 1}"


def test_one_larger_than_all_ranks_is_kept_and_a_plain_one_is_denied(
    faked: Faked,
) -> None:
    large = faked.submit(OWN + LENT + 1, burstable=True)
    plain = faked.submit(OWN + LENT + 1, burstable=False)
    faked.up(f"{OWN}-{OWN + LENT - 1}")
    faked.turn()
    assert (large.ranks, large.denied) == ("", "")
    assert "unsatisfiable request" in plain.denied


def test_what_fits_here_stands_in_its_place_as_long_as_it_does(faked: Faked) -> None:
    first = faked.submit(OWN, burstable=False)
    faked.turn()
    assert first.ranks == f"0-{OWN - 1}"
    burst = faked.submit(OWN, burstable=True)
    behind = faked.submit(1, burstable=False)
    faked.turn()
    assert (burst.ranks, behind.ranks) == ("", "")
    # A node goes down: it could not run here any more, and stands in nobody's way.
    faked.down("7")
    faked.pool.free(1, None, final=True)
    faked.turn()
    assert burst.ranks == ""
    assert behind.ranks == "0"


def test_priority_decides_among_burst_jobs(faked: Faked) -> None:
    first = faked.submit(1, burstable=True, requires="burst")
    second = faked.submit(1, burstable=True, requires="burst", priority=20)
    faked.up(f"{OWN}")
    faked.turn()
    assert (first.ranks, second.ranks) == ("", f"{OWN}")


def test_it_starts_on_lent_nodes_though_an_own_job_is_blocked_ahead(
    faked: Faked,
) -> None:
    faked.submit(OWN, burstable=False)
    ahead = faked.submit(1, burstable=False, requires="^burst")
    burst = faked.submit(2, burstable=True)
    faked.turn()
    faked.up("8-9")
    faked.turn()
    assert (ahead.ranks, burst.ranks) == ("", "8-9")


def test_burst_jobs_do_not_starve_an_own_job(faked: Faked) -> None:
    """The own job's nodes are free of them: they stand behind it for that."""
    faked.submit(1, burstable=False)
    own = faked.submit(OWN, burstable=False, requires="^burst")
    behind = [faked.submit(1, burstable=True) for _ in range(5)]
    faked.turn()
    assert [job.ranks for job in (own, *behind)] == [""] * 6
    faked.pool.free(1, None, final=True)
    faked.turn()
    assert own.ranks == f"0-{OWN - 1}"


def test_leased_nodes_are_for_their_jobs_alone(faked: Faked) -> None:
    gang = faked.submit(2, burstable=True)
    small = faked.submit(1, burstable=True, requires="burst")
    faked.lend({"1": "8-9"}, "8-11")
    faked.up("8")
    faked.turn()
    assert (gang.ranks, small.ranks) == ("", ""), "nor does it start on own nodes"
    faked.up("9-10")
    faked.turn()
    assert (gang.ranks, small.ranks) == ("8-9", "")
    faked.lend({}, "")
    faked.turn()
    assert small.ranks == "10"


def test_a_job_whose_burst_is_given_up_starts_on_own_nodes(faked: Faked) -> None:
    job = faked.submit(1, burstable=True)
    faked.lend({"1": "8"}, "8")
    faked.turn()
    assert job.ranks == ""
    faked.lend({}, "")
    faked.turn()
    assert job.ranks == "0"


def test_what_waits_for_nodes_that_went_away_blocks_nobody(faked: Faked) -> None:
    faked.up("8")
    faked.turn()
    faked.down("8")
    burst = faked.submit(1, burstable=True, requires="burst")
    plain = faked.submit(1, burstable=False)
    faked.turn()
    assert (burst.ranks, plain.ranks) == ("", "0")


def test_a_burst_job_never_gets_own_and_lent_nodes_together(faked: Faked) -> None:
    faked.up(f"{OWN}-{OWN + 1}")
    burst = faked.submit(OWN + 2, burstable=True)
    faked.turn()
    assert burst.ranks == ""


def test_a_burst_job_that_is_canceled_while_others_start_is_not_started(
    faked: Faked,
) -> None:
    """It is the last job, so that its end alone makes no new turn."""
    first = faked.submit(1, burstable=True, requires="burst")
    second = faked.submit(1, burstable=True, requires="burst")
    faked.up(f"{OWN}-{OWN + 1}")
    steps = faked.steps()
    next(steps)
    assert first.ranks == f"{OWN}"
    faked.cancel(2)
    list(steps)
    assert second.canceled
    assert second.ranks == ""


def test_jobs_start_one_at_a_time_and_once_wherever_events_interrupt(
    faked: Faked,
) -> None:
    waiting = [faked.submit(1, burstable=False) for _ in range(OWN)]
    for already in range(OWN):
        steps = faked.steps()
        next(steps)
        assert [bool(job.ranks) for job in waiting].count(True) == already + 1
        steps.close()
    late = faked.submit(1, burstable=False)
    faked.pool.free(1, None, final=True)
    faked.turn()
    assert {job.ranks for job in waiting} == {str(rank) for rank in range(OWN)}
    assert late.ranks == waiting[0].ranks


def test_what_it_remembers_of_jobs_has_a_limit() -> None:
    faked = Faked("fifo", remembers=10)
    faked.turn()
    for shape in range(25):
        faked.submit(1, burstable=True, requires=f"x{shape}")
        assert 0 < faked.remembered() <= 10
