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


def test_ranks_drained_by_a_record_that_was_lost_are_undrained() -> None:
    replay(
        ONE,
        taken("request", nodes=2, provider=""),
        *ticks(40.0),
        taken("down", burst=0),
        *ticks(40.0),
        taken("record_is_spoiled", burst=0, text="{"),
    )


def test_jobs_that_run_elsewhere_do_not_prolong_the_idleness_of_a_burst() -> None:
    replay(
        {**ONE, "intake": {"mode": "queue"}},
        taken("request", nodes=2, provider="a"),
        *ticks(1.0, 40.0, 1.0),
        submit(2, 1, duration=300.0),
        *ticks(40.0),
    )


def test_a_refusal_does_not_stand_where_a_job_gives_back_a_part() -> None:
    """Its burst has room for others then, and in the tick before it had not."""
    replay(
        {
            "plan": {"share_users": True},
            "providers": {"a": {"capacity": 6, "max_nodes": 4}},
            "serve": True,
            "standing": True,
        },
        submit(8, 1, wish=4, constraint=1),
        taken("person_drains", rank=3, drains=True),
        taken("request", nodes=1, provider="a"),
        *ticks(0.1, 7.0, 40.0),
        submit(1, 2, wish=2, constraint=1),
        taken("time_passes", ticks=5),
    )


def test_a_job_that_limits_keep_waiting_is_served_while_smaller_ones_come() -> None:
    """The burst that the limits allow is kept by jobs that it is large enough for."""
    replay(
        {
            "limits": {"max_bursts": 1, "max_nodes": 4},
            "providers": {"a": {"capacity": 6, "max_nodes": 4}},
            "serve": True,
            "stream": True,
        },
        taken("request", nodes=1, provider="a"),
        submit(3, 1, wish=1, constraint=1, duration=30.0),
    )


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


def test_an_isolated_burst_waits_for_its_provider_to_be_enabled() -> None:
    replay(
        BOTH,
        taken("submit_isolated", nodes=3, duration=0.0, held=False),
        *ticks(0.1),
        taken("settings_change", change=15, reload=False),
        *ticks(1.0, 40.0),
    )


def test_a_refusal_does_not_stand_once_a_record_can_be_done_without() -> None:
    replay(
        {**BOTH, "standing": True},
        taken("submit_isolated", nodes=3, duration=20.0, held=True),
        *ticks(7.0),
        taken("lead_is_troubled", unreadable=True, deaf=False),
        taken("record_is_spoiled", burst=2, text='{"version":99}'),
    )


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


def test_slots_are_kept_as_soon_as_another_job_joins_a_burst_on_them() -> None:
    """Its user bears that burst from then on, and no more once it is gone."""
    replay(
        {
            "limits": {"max_nodes_per_user": 4},
            "plan": {"share": False, "share_users": True},
            "providers": {"a": {"max_nodes": 4, "price": 2.0}, "b": {"max_nodes": 4}},
            "serve": True,
            "standing": True,
        },
        submit(1, 2, wish=4, constraint=1, duration=30.0, held=True),
        taken("submit_plain", nodes=1),
        submit(2, 3, wish=4),
        submit(1, 2, wish=4, constraint=2, duration=30.0, held=True),
        submit(4, 2, wish=5, duration=30.0),
    )


def test_slots_are_kept_for_another_where_a_user_lowers_the_urgency_of_the_first() -> (
    None
):
    replay(
        {
            "intake": {"mode": "scheduler"},
            "providers": {"a": {"max_nodes": 8}},
            "standing": True,
        },
        submit(5, 1, wish=2, constraint=1, duration=300.0, held=True),
        submit(3, 2, wish=2, constraint=1, held=True),
        submit(4, 1, wish=3, constraint=2),
        submit(1, 3, wish=3, constraint=2, held=True),
        *ticks(0.1),
        submit(3, 1, wish=4, duration=300.0),
        taken("coast", seconds=3.0),
        taken("user_changes_urgency", job=4, urgency=8),
    )


def test_a_burst_is_used_where_its_job_began_before_all_of_it_was_up() -> None:
    """Its user took it back, so that Flux started it on one rank of the burst."""
    replay(
        {"providers": {"a": {"max_nodes": 3}, "b": {"max_nodes": 4, "place": "a"}}},
        taken("network", joins=False),
        submit(3, 1, wish=2, held=True),
        *ticks(1.0),
        taken("crash_at_a_write", when="before"),
        taken("follower_joins", rank=5),
        taken("user_changes_urgency", job=0, urgency=20),
        *ticks(1.0, 1.0, 7.0, 7.0),
    )


def test_a_job_of_which_a_node_is_drained_by_a_person_is_held_for_as_long() -> None:
    """It lacks a part, and is not one that Flux does not start."""
    replay(
        {"providers": {"a": {"max_nodes": 3}, "b": {"max_nodes": 4, "place": "a"}}},
        submit(8, 3, wish=3, held=True),
        *ticks(1.0),
        taken("person_drains", rank=5, drains=True),
        *ticks(0.1, 7.0, 40.0),
        submit(3, 2, wish=4, constraint=1),
        *ticks(40.0),
    )


def test_ranks_drained_by_a_lost_record_are_undrained_where_slots_are_others() -> None:
    replay(
        {"providers": {"a": {"max_nodes": 8}}},
        submit(2, 1, wish=4, constraint=1),
        taken("provider_fails", name="a", error="later", call="provision"),
        *ticks(1.0, 0.1, 7.0),
        taken("job_ends", job=7, result="canceled"),
        taken("time_passes", ticks=3),
        taken("record_is_spoiled", burst=5, text="{"),
        taken("settings_change", change=9, reload=True),
    )


def test_a_refusal_may_stand_while_nodes_are_given_to_some_job() -> None:
    replay(
        {
            "intake": {"mode": "scheduler"},
            "providers": {"a": {"capacity": 6, "max_nodes": 4}},
            "standing": True,
        },
        submit(5, 1, wish=4),
        *ticks(7.0, 1.0),
        taken("journal_lags", lagging=True),
        taken("job_ends", job=3, result="completed"),
        submit(4, 2, wish=3, constraint=1),
        *ticks(1.0),
        taken("submit_hostile", kind="environment is large", user=1),
    )


def test_a_user_who_joins_a_burst_bears_it_beside_a_new_one() -> None:
    many = {"max_nodes": 4, "modes": ["joined", "isolated"]}
    replay(
        {
            "limits": {"max_nodes_per_user": 4},
            "plan": {"share_users": True},
            "providers": {"a": {**many, "price": 2.0}, "b": {**many, "price": 1.0}},
        },
        submit(3, 3, wish=2, duration=30.0, held=True),
        *ticks(0.1, 1.0),
        submit(4, 2, duration=300.0),
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


def test_a_job_whose_record_is_lost_is_not_begun_in_a_second_isolated_burst() -> None:
    """The lease of its burst says that it may run there."""
    many = {"max_nodes": 4, "modes": ["joined", "isolated"]}
    slow = [
        taken("provider_is_slow", name=name, knob="starts_after", count=5)
        for name in ("a", "b")
    ]
    replay(
        {"providers": {"a": {**many, "price": 2.0}, "b": {**many, "price": 1.0}}},
        *slow,
        taken("submit_isolated", nodes=1, duration=0.0, held=True),
        *ticks(1.0, 1.0, 1.0),
        taken("record_is_spoiled", burst=3, text="\\x00"),
        *slow,
        taken("coast", seconds=10.0),
    )


def test_a_request_is_no_second_trial_of_a_provider_that_has_just_answered() -> None:
    """Its first burst was provisioned twice: once it was refused, and once made."""
    replay(
        {
            "providers": {
                "a": {"max_nodes": 8, "price": 2.0},
                "b": {"max_nodes": 8, "price": 1.0},
            }
        },
        taken("provider_is_slow", name="a", knob="starts_after", count=3),
        taken("request", nodes=1, provider="a"),
        *ticks(0.1),
        taken("provider_fails", name="a", error="refused", call="provision"),
        taken("request", nodes=5, provider="a"),
        *ticks(7.0),
    )


def test_a_request_waits_for_the_trial_that_an_answer_has_just_begun() -> None:
    """Of two bursts, one was refused and one was made."""
    replay(
        {"providers": {"a": {"max_nodes": 2}}},
        taken("provider_is_slow", name="a", knob="starts_after", count=3),
        taken("request", nodes=1, provider="a"),
        taken("request", nodes=1, provider="a"),
        *ticks(0.1),
        taken("provider_fails", name="a", error="refused", call="provision"),
        taken("request", nodes=1, provider="a"),
        *ticks(7.0),
    )


def test_a_refusal_does_not_stand_where_a_burst_was_requested_since() -> None:
    """Nobody bears its nodes: with them the job needs fewer than its user's limit."""
    replay(
        {
            "limits": {"max_nodes_per_user": 4},
            "providers": {"a": {"max_nodes": 8, "price": 1.0}},
            "standing": True,
        },
        submit(8, 3),
        *ticks(1.0, 0.1),
        taken("request", nodes=5, provider=""),
    )


def test_what_a_job_would_use_that_gets_nothing_leaves_others_their_budget() -> None:
    """It was counted for the rest of the plan, and others were told of that."""
    replay(
        {
            "budget": [
                {"limit": 8.0},
                {"limit": 0.6, "match": {"provider": "a"}, "per": "day"},
            ],
            "providers": {"a": {"capacity": 6, "max_nodes": 4, "price": 1.0}},
            "standing": True,
        },
        submit(9, 3, duration=30.0),
        *ticks(7.0),
        taken("request", nodes=1, provider=""),
        submit(2, 3, wish=1, constraint=2),
    )


def test_a_burst_is_idle_once_the_job_that_never_started_there_has_left() -> None:
    replay(
        {**EIGHT, "serve": True},
        taken("person_stops_queues", stopped=True),
        taken("submit_plain", nodes=2),
        taken("submit_plain", nodes=1),
        taken("submit_plain", nodes=2),
        taken("request", nodes=5, provider=""),
        submit(4, 3, wish=5, held=True),
        *ticks(7.0, 0.1, 1.0, 40.0),
    )


def test_a_refusal_does_not_stand_where_own_nodes_are_left_for_a_burst() -> None:
    """The second job was still told of offers when it could have had own nodes."""
    replay(
        {
            "deadlines": {"lease": "300s"},
            "hosts": THREE_SLOTS,
            "providers": {
                "a": {
                    "capacity": 6,
                    "max_nodes": 4,
                    "modes": ["joined", "isolated"],
                    "price": 1.0,
                }
            },
            "standing": True,
        },
        taken("person_stops_queues", stopped=True),
        submit(2, 3, wish=2, duration=30.0),
        *ticks(1.0),
        submit(1, 1, wish=1, duration=300.0, held=True),
        taken("time_passes", ticks=5),
        *ticks(1.0),
        taken("coast", seconds=3.0),
    )


def test_a_burst_is_idle_from_when_its_growth_is_taken_back_at_once() -> None:
    """Both requests were carried out in one tick, so that nobody saw it grow."""
    replay(
        EIGHT,
        taken("request", nodes=1, provider="a"),
        *ticks(1.0, 7.0, 7.0),
        taken("resize", burst=7, nodes=4),
        taken("resize", burst=2, nodes=1),
        *ticks(40.0),
    )


def test_a_burst_that_is_left_behind_by_a_reload_and_a_restart_is_quarantined() -> None:
    replay(
        EIGHT,
        taken("settings_change", change=19, reload=True),
        taken("submit_isolated", nodes=3, duration=0.0, held=False),
        *ticks(1.0, 1.0),
        taken("settings_change", change=20, reload=False),
        *ticks(1.0),
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


def test_a_refusal_does_not_stand_where_a_burst_gives_back_to_its_budget() -> None:
    """A lost record of an isolated one, that is taken down, is one of no nodes."""
    offer = {"modes": ["joined", "isolated"], "price": 1.0, "starts_after": 0}
    job = {"duration": 0.0, "held": False}
    replay(
        {
            "budget": [{"limit": 4.5, "per": "week"}],
            "providers": {
                "a": {**offer, "max_nodes": 3},
                "b": {**offer, "max_nodes": 4, "place": "a"},
            },
            "standing": True,
        },
        taken("submit_isolated", **job, nodes=4),
        *ticks(1.0),
        taken("submit_isolated", **job, nodes=3),
        taken("record_is_spoiled", burst=2, text="{"),
    )


def test_what_flux_drained_of_a_slot_that_is_declared_no_more_is_undrained() -> None:
    replay(
        {"hosts": THREE_SLOTS, "providers": {"a": {"max_nodes": 4, "price": 1.0}}},
        submit(2, 3, wish=2, constraint=1, duration=300.0, held=True),
        *ticks(0.1, 40.0),
        taken("settings_change", change=9, reload=True),
        taken("prolog_fails", job=7),
    )


def test_slots_are_kept_for_another_where_the_first_is_held_and_was_urgent() -> None:
    """Its release had given it a higher urgency than it has now that it is held."""
    offer = {"max_nodes": 4, "starts_after": 0}
    replay(
        {
            "intake": {"release_urgency": 20},
            "providers": {"a": {**offer, "price": 2.0}, "b": {**offer, "price": 1.0}},
            "standing": True,
        },
        submit(5, 3, wish=4, constraint=1, duration=30.0),
        *ticks(7.0),
        submit(8, 2, constraint=1),
        *ticks(40.0),
        taken("record_is_spoiled", burst=5, text=""),
        submit(4, 1, wish=4, constraint=1, duration=300.0, held=True),
    )


def test_a_refusal_by_the_users_limit_falls_when_requested_nodes_come_up() -> None:
    replay(
        {
            "limits": {"max_nodes_per_user": 4},
            "providers": {"a": {"max_nodes": 4, "price": 1.0}},
            "standing": True,
        },
        taken("submit_plain", nodes=2),
        submit(2, 2, held=True),
        taken("network", joins=False),
        taken("provider_is_slow", name="a", knob="ends_after", count=3),
        *ticks(0.1),
        taken("request", nodes=5, provider=""),
        taken("down", burst=6),
        *ticks(40.0),
        submit(5, 1, wish=2, duration=30.0),
        *ticks(1.0, 1.0, 1.0, 7.0, 1.0),
    )


def test_what_a_job_had_that_no_daemon_ever_saw_is_not_booked_as_work() -> None:
    """The journal was behind, and the job ended before the next daemon began."""
    offer = {"max_nodes": 4, "starts_after": 0}
    replay(
        {
            "providers": {
                "a": {**offer, "price": 2.0, "starts_after": 5},
                "b": {**offer, "price": 1.0},
            }
        },
        taken("submit_wide", nodes=2, cores=3, whole_nodes=True),
        submit(2, 3, wish=4),
        taken("submit_plain", nodes=2),
        *ticks(40.0),
        taken("journal_lags", lagging=True),
        taken("rpc_is_not_answered", rpc="store", took_effect=False),
        *ticks(0.1),
        submit(2, 2, wish=2),
        *ticks(0.1),
        taken("settings_change", change=13, reload=False),
        taken("running_jobs_end"),
    )


def test_no_work_is_booked_in_unread_time_of_a_burst_that_grows_after_it() -> None:
    offer = {"modes": ["joined", "isolated"], "price": 1.0}
    replay(
        {
            "providers": {
                "a": {**offer, "max_nodes": 3, "starts_after": 0},
                "b": {**offer, "max_nodes": 4, "place": "a", "starts_after": 2},
            }
        },
        submit(4, 3, duration=300.0, held=True),
        taken("coast", seconds=10.0),
        *ticks(40.0),
        taken("lead_is_troubled", unreadable=True, deaf=False),
        taken("running_jobs_end"),
        submit(3, 3, wish=5, held=True),
        taken("coast", seconds=3.0),
    )


def test_a_refusal_by_the_users_limit_is_final_whoever_has_the_requested_nodes() -> (
    None
):
    offer = {"modes": ["joined", "isolated"], "price": 1.0}
    replay(
        {
            "intake": {"mode": "scheduler"},
            "limits": {"max_nodes_per_user": 4},
            "providers": {
                "a": {**offer, "max_nodes": 3, "starts_after": 5},
                "b": {**offer, "max_nodes": 4, "place": "a", "starts_after": 0},
            },
            "standing": True,
        },
        taken("submit_plain", nodes=2),
        taken("submit_wide", nodes=1, cores=3, whole_nodes=True),
        taken("request", nodes=2, provider=""),
        taken("person_drains", rank=9, drains=True),
        submit(5, 2, duration=300.0),
        submit(3, 3, duration=30.0),
        taken("request_isolated", kind="interactive"),
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
