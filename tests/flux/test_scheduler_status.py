# SPDX-License-Identifier: MIT
"""How often the scheduler is asked, and that a view between two answers is safe."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from burst.flux import FluxLead
from burst.flux.node_set import parse_nodes
from burst.flux.ranks import read_ranks
from burst.flux.rpc import RpcClient
from burst.flux.scheduler_status import (
    LONGEST_PAUSE_S,
    OLDEST_S,
    SHARE,
    SchedulerStatus,
)
from burst.model.lead import LeadView
from burst.model.shape import Shape
from tests.flux.fake_handle import FakeHandle
from tests.flux.rank_answers import ALL, NOTHING, resources, status
from tests.flux_instance import FluxInstance, flux_instance
from tests.support.waiting import wait_until

_TOOK_S = 0.1
_PAUSE_S = _TOOK_S / SHARE + 0.01


class Lead:
    """A lead whose scheduler takes a tenth of a second for an answer."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.asked = 0
        self.takes = _TOOK_S
        self.of_resource: dict[str, Any] = status()
        self.of_manager: Any = NOTHING
        self.of_scheduler: dict[str, Any] = {
            "all": ALL,
            "down": None,
            "allocated": None,
        }
        self.told = {"all": ALL}
        services = {
            "resource.status": lambda _: self.of_resource,
            "job-manager.resource-status": lambda _: {"allocated": self.of_manager},
            "sched.resource-status": self._answer,
            "resource.sched-status": lambda _: self.told,
        }
        self._client = RpcClient(FakeHandle(services).as_handle())
        self._known = SchedulerStatus(clock=lambda: self.now)

    def _answer(self, _: Any) -> Any:
        self.asked += 1
        self.now += self.takes
        return self.of_scheduler

    def look(self, after: float = 0.0, *, moved: bool = False) -> LeadView:
        self.now += after
        return read_ranks(self._client, self._known, moved=moved)

    def forget(self, rank: int) -> None:
        self._known.forget({rank})

    @property
    def due_in(self) -> float | None:
        return self._known.due_in

    def drain(self, rank: int, at: float) -> None:
        self.of_resource = status(drain={str(rank): {"timestamp": at, "reason": "x"}})


@pytest.fixture
def lead() -> Lead:
    lead = Lead()
    lead.look()
    return lead


def test_it_is_not_asked_while_nothing_happens(lead: Lead) -> None:
    for _ in range(50):
        lead.look(after=1.0)
    assert lead.asked == 1
    lead.look(after=OLDEST_S + 1)
    assert lead.asked == 2


def test_it_is_asked_for_a_hundredth_of_its_time_at_most(lead: Lead) -> None:
    began = lead.now
    for _ in range(1000):
        lead.look(after=0.5, moved=True)
    asked, spent = lead.asked - 1, lead.now - began
    assert 40 < asked <= spent * SHARE / _TOOK_S + 1


def test_one_answer_that_took_long_as_it_was_busy_does_not_count(lead: Lead) -> None:
    lead.takes = 5.0
    lead.look(after=_PAUSE_S, moved=True)
    lead.takes = _TOOK_S
    lead.look(after=_PAUSE_S, moved=True)
    assert lead.asked == 3


def test_the_first_that_took_long_delays_the_second_by_a_minute_at_most() -> None:
    lead = Lead()
    lead.takes = 5.0
    lead.look()
    lead.look(after=LONGEST_PAUSE_S + 1, moved=True)
    assert lead.asked == 2


@pytest.mark.parametrize("event", ["online", "exclude", "drain", "manager", "moved"])
def test_each_event_has_it_asked(lead: Lead, event: str) -> None:
    match event:
        case "online":
            lead.of_resource = status(online="0-2")
        case "exclude":
            lead.of_resource = status(exclude="3")
        case "drain":
            lead.drain(3, 5.0)
        case "manager":
            lead.of_manager = resources(("1", "0", ""))
    lead.look(after=_PAUSE_S, moved=event == "moved")
    assert lead.asked == 2


def test_what_is_drained_counts_as_allocated_until_it_is_asked(lead: Lead) -> None:
    lead.drain(3, at=5.0)
    lead.of_scheduler["down"] = resources(("3", "0-3", "0"))
    assert lead.look(after=1.0).allocated == {3}
    assert lead.asked == 1
    due = lead.due_in
    assert due is not None
    assert lead.look(after=due + 0.01).allocated == frozenset()
    assert (lead.asked, lead.due_in) == (2, None)
    # Undrained and drained again between two looks: a job may have started there.
    lead.drain(3, at=6.0)
    assert lead.look(after=1.0).allocated == {3}


def test_a_drain_of_ours_within_the_same_second_is_another(lead: Lead) -> None:
    lead.drain(3, at=5.0)
    lead.of_scheduler["down"] = resources(("3", "0-3", "0"))
    assert not lead.look(after=_PAUSE_S).allocated
    lead.forget(3)
    assert lead.look(after=1.0).allocated == {3}
    assert not lead.look(after=_PAUSE_S).allocated


def test_a_grant_is_allocated_until_the_job_manager_shows_it_and_its_end(
    lead: Lead,
) -> None:
    granted = resources(("2", "0-1", "0"))
    lead.of_scheduler["allocated"] = granted
    view = lead.look(after=_PAUSE_S, moved=True)
    assert (view.granting, view.free[2]) == ({2: Shape(2, 1)}, Shape(2, 0))
    lead.of_manager = granted
    view = lead.look(after=1.0, moved=True)
    assert not view.granting
    assert (view.allocated, view.free[2]) == (frozenset({2}), Shape(2, 0))
    lead.of_manager = NOTHING
    view = lead.look(after=1.0, moved=True)
    assert (view.allocated, view.free[2]) == (frozenset(), Shape(4, 1))
    assert lead.asked == 2


def test_a_grant_to_a_job_that_has_ended_is_known_until_it_is_asked_again(
    lead: Lead,
) -> None:
    """The job starts and ends between two looks: the job manager never shows it."""
    lead.of_scheduler["allocated"] = resources(("2", "0-1", "0"))
    lead.look(after=_PAUSE_S, moved=True)
    lead.of_scheduler["allocated"] = None
    view = lead.look(after=0.01, moved=True)
    assert view.granting == {2: Shape(2, 1)}
    assert not lead.look(after=view.granting_lasts).granting


def test_ranks_that_the_scheduler_does_not_know_are_closed(lead: Lead) -> None:
    lead.of_scheduler["all"] = resources(("0-1", "0-1", ""))
    lead.of_resource = status(exclude="3")
    view = lead.look(after=OLDEST_S + 1, moved=True)
    assert view.unscheduled == {2}
    assert view.closed == {2, 3}


def test_ranks_that_flux_keeps_from_the_scheduler_are_closed(lead: Lead) -> None:
    lead.told = {"all": resources(("0", "0-1", ""), ("2-3", "0-3", "0"))}
    assert lead.look(after=OLDEST_S + 1).unscheduled == {1}


@pytest.mark.flux
def test_a_rank_that_went_down_after_a_reload_of_resources_is_closed() -> None:
    with flux_instance() as real, closing(real.lead()) as lead:
        lead.listen(lambda: None)
        _come_and_go(real, lead)
        assert not lead.observe().unscheduled
        (real.directory / "R2").write_text(real.flux("resource", "R"))
        real.flux("module", "remove", "-f", "sched-simple")
        real.flux("resource", "reload", str(real.directory / "R2"))
        real.flux("module", "load", "sched-simple")
        _come_and_go(real, lead)
        real.reload_scheduler()
        known = parse_nodes(real.rpc("sched.resource-status", {})["all"])
        assert 2 in known.ranks
        assert lead.observe().unscheduled == {2}


def _come_and_go(real: FluxInstance, lead: FluxLead) -> None:
    real.start_follower("burst-0-0")
    wait_until(lambda: 2 in lead.observe().online, "the follower to join")
    real.stop_follower("burst-0-0")
    wait_until(lambda: 2 not in lead.observe().online, "the follower to leave")
