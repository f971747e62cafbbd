# SPDX-License-Identifier: MIT
"""Interleavings that the state machine found to break an invariant, and shortened."""

from __future__ import annotations

from typing import Any

from burst.model.reason import Reason
from tests.machine.explore import Taken, replay, taken
from tests.machine.steps import Steps


def submit(nodes: int, user: int, **how: Any) -> Taken:
    return taken("submit", nodes=nodes, user=user, **how)


def ticks(*seconds: float) -> list[Taken]:
    return [taken("tick", seconds=each) for each in seconds]


THREE_SLOTS = "lead-[0-1],burst-0-[0-3],burst-1-[0-3],burst-2-[0-1]"
ONE = {"providers": {"a": {"max_nodes": 4}}}
EIGHT = {
    "providers": {"a": {"max_nodes": 8, "modes": ["joined", "isolated"], "price": 1.0}}
}


def test_a_job_that_may_have_no_offer_is_not_told_that_it_runs_too_long() -> None:
    machine = Steps({**ONE, "standing": True})
    wish = 3  # for a provider that there is not
    longer, shorter = submit(4, 1, wish=wish, duration=300.0), submit(4, 1, wish=wish)
    for step in (longer, *ticks(1.0), shorter, *ticks(1.0)):
        machine.take(*step)
    verdicts = machine.world.engine.snapshot.decisions.values()
    assert [v.reason for v in verdicts] == [Reason.TURNED_DOWN] * 2
    found = {refusal.reason for v in verdicts for refusal in v.refusals}
    assert found == {Reason.OTHER_PROVIDER}


BOTH = {
    "providers": {"a": {"capacity": 6, "max_nodes": 4, "modes": ["joined", "isolated"]}}
}


def test_a_burst_whose_record_is_lost_is_taken_down_where_it_was_made() -> None:
    replay(
        {"providers": {"a": {"max_nodes": 4, "price": 2.0}, "b": {"max_nodes": 4}}},
        taken("settings_change", change=19, reload=False),
        taken("settings_change", change=17, reload=False),
        submit(3, 2, wish=1),
        taken("time_passes", ticks=3),
        taken("record_is_spoiled", burst=0, text="null"),
    )


def test_drains_of_a_burst_that_is_gone_are_taken_back_without_a_jobs_record() -> None:
    replay(
        BOTH,
        taken("store_is_full", full=True),
        taken("submit_isolated", nodes=3, duration=0.0, held=True),
        submit(3, 1, constraint=2, duration=300.0),
        taken("capacity_changes", name="a", capacity=2),
        taken("store_is_full", full=False),
        *ticks(0.1, 1.0, 7.0, 1.0),
        taken("record_is_spoiled", burst=2, text='{"version":99}'),
    )


def test_a_job_that_does_not_start_leaves_all_of_its_bursts_at_once() -> None:
    replay(
        {"limits": {"max_nodes_per_burst": 3}, "providers": {"a": {"max_nodes": 4}}},
        taken("person_stops_queues", stopped=True),
        submit(4, 3, wish=4, duration=30.0),
        submit(2, 2, wish=4, constraint=2, held=True),
        taken("settings_change", change=8, reload=False),
        taken("time_passes", ticks=3),
        *ticks(40.0),
        taken("user_changes_urgency", job=0, urgency=8),
        taken("submit_isolated", nodes=4, duration=0.0, held=False),
        *ticks(40.0),
    )


def test_a_job_that_is_refused_beside_a_growth_is_told_that_slots_are_kept() -> None:
    replay(
        {
            "hosts": THREE_SLOTS,
            "providers": {"a": {"capacity": 6, "max_nodes": 4, "price": 1.0}},
            "serve": True,
            "standing": True,
        },
        submit(8, 1),
        submit(3, 2, wish=1, duration=30.0, held=True),
    )


def test_what_flux_starts_on_a_burst_is_not_bought_as_a_person_asks_for_it() -> None:
    """A command that keeps the accounts comes between the start and the tick."""
    replay(
        {
            "budget": [{"limit": 1.0, "per": "day"}],
            "providers": {"b": {"max_nodes": 4, "price": 1.0}},
        },
        submit(3, 1, wish=3, duration=300.0),
        *ticks(1.0, 1.0),
        taken("resize", burst=0, nodes=3),
        taken("follower_dies", rank=2),
        submit(2, 3, wish=2, constraint=1),
        *ticks(1.0),
    )


def test_an_idle_burst_that_a_limit_needs_gone_does_not_stay_for_the_job() -> None:
    """The job gets three bursts, three are the limit, and this has a part of a slot."""
    replay(
        {
            **EIGHT,
            "hosts": THREE_SLOTS,
            "limits": {"max_nodes_per_burst": 3},
            "serve": True,
        },
        taken("submit_wide", nodes=1, cores=3, whole_nodes=False),
        *ticks(40.0),
        taken("daemon_is_away", seconds=1000.0, ends=True, dies=False),
        submit(8, 1, wish=0, constraint=1, duration=30.0, held=True),
    )


def test_a_host_that_is_declared_is_never_told_to_be_none() -> None:
    """Of two nodes on one host, which there will never be, another reason is told."""
    replay(
        {"providers": {"a": {"max_nodes": 3}}},
        submit(2, 1, constraint=3, held=True),  # host:burst-0-3
        taken("time_passes", ticks=5),
    )


def test_a_refusal_for_money_ends_as_others_turn_out_to_pay_for_a_burst() -> None:
    """Their job starts on it, so less of its price counts for the job's user."""
    replay(
        {
            "budget": [
                {"limit": 4.4, "match": {"user": "1"}},
                {"limit": 6, "match": {"user": ["2", "3"]}},
            ],
            "limits": {"max_nodes_per_burst": 3},
            "providers": {"a": {"keeps": 4, "max_nodes": 4, "price": 1.0}},
            "standing": True,
        },
        taken("submit_later", nodes=2, seconds=5.0, held=True),
        taken("provider_fails", name="a", error="bug", call="provision"),
        taken("submit_isolated", nodes=3, duration=0.0, held=False),
        submit(4, 1, wish=4, constraint=0, duration=30.0, held=False),
        *ticks(7.0),
        submit(5, 2, wish=5, constraint=1, held=False),
    )


def test_a_held_job_gets_no_burst_while_the_job_before_it_may_have_started() -> None:
    replay(
        {"providers": {"a": {"capacity": 6, "max_nodes": 4, "price": 1.0, "total": 6}}},
        taken("submit_later", nodes=1, seconds=15.0, held=False),
        taken("journal_lags", lagging=True),
        taken("submit_later", nodes=1, seconds=5.0, held=True),
    )
