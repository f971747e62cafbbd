# SPDX-License-Identifier: MIT
"""A hundred nodes, more than brokers fit on one machine: sched-burst over faked ranks.

The scheduler is the one that Flux loads, on a handle without a broker, with the real
resource pool; what the job manager and the resource module would send is called.
"""

from __future__ import annotations

import importlib
from typing import Any

import pytest

from benchmarks.order import load
from tests.flux_instance import FLUX, MISSING, flux_bindings
from tests.intake.desk import SCHEDULER

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]

OWN = 8
LENT = 100


class Request:
    """An alloc request, and how it was answered."""

    def __init__(self) -> None:
        self.ranks: str = ""
        self.denied: str = ""

    def success(self, pool: Any, _annotations: Any = None) -> None:
        self.ranks = str(pool.to_resource_set().ranks)

    def deny(self, note: str) -> None:
        self.denied = note

    def annotate(self, _annotations: Any) -> None:
        """Nobody reads them."""


class Faked:
    """An instance of 8 own nodes that are up, and 100 that may be lent."""

    def __init__(self, policy: str, lent: int = LENT) -> None:
        flux = flux_bindings()
        importlib.import_module("flux.resource")
        self._scheduler = load(SCHEDULER).make_class(policy)(flux.Flux("loop://"))
        last = OWN + lent - 1
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

    def submit(self, nodes: int, *, burstable: bool) -> Request:
        """Submit `-N nodes`, whole ones."""
        self._jobs += 1
        slot = {"type": "slot", "count": 1, "with": [{"type": "core", "count": 1}]}
        node = {"type": "node", "count": nodes, "exclusive": True, "with": [slot]}
        system = {"duration": 0.0, **({"burstable": True} if burstable else {})}
        jobspec = {
            "version": 1,
            "resources": [node],
            "attributes": {"system": system},
        }
        request = Request()
        self._scheduler.alloc(request, self._jobs, 16, 0, 0.0, jobspec)
        return request

    def turn(self) -> None:
        for _ in self._scheduler.schedule():
            pass


@pytest.fixture(params=["fifo", "backfill"])
def faked(request: pytest.FixtureRequest) -> Faked:
    return Faked(request.param)


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


def test_a_burst_job_never_gets_own_and_lent_nodes_together(faked: Faked) -> None:
    faked.up(f"{OWN}-{OWN + 1}")
    burst = faked.submit(OWN + 2, burstable=True)
    faked.turn()
    assert burst.ranks == ""
