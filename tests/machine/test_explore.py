# SPDX-License-Identifier: MIT
"""That the state machine sees what it should, and shows how to see it again."""

from __future__ import annotations

import pytest

from burst.errors import StoreError, Unreadable
from tests.builders import but
from tests.machine.explore import Failure, Taken, attempt, make, replay, shorten, taken
from tests.machine.invariants import Broken, Since
from tests.machine.steps import Steps

SCENARIO = {"providers": {"a": {"max_nodes": 4}}}


def test_an_interleaving_of_a_seed_is_the_same_each_time() -> None:
    assert make(7) == make(7)
    assert make(7) != make(8)


def test_what_breaks_is_shortened_and_printed_as_a_replay() -> None:
    noise: list[Taken] = [("tick", {"seconds": 1.0})] * 6
    spoils: Taken = ("user_changes_urgency", {"job": 0})  # an argument is missing
    steps = [*noise, spoils, *noise]
    found = attempt(SCENARIO, steps)
    assert found is not None
    scenario, steps = shorten(SCENARIO, steps, found[0])
    assert (scenario, steps) == (SCENARIO, [spoils])
    text = Failure(3, *found, scenario, steps).show()
    assert "seed 3: Traceback" in text
    with pytest.raises(TypeError):
        exec(text[text.index("\nreplay(") :], {"replay": replay, "taken": taken})


@pytest.fixture
def machine() -> Steps:
    """A world in which one job runs on one burst."""
    machine = Steps(SCENARIO)
    machine.take("submit", {"nodes": 4, "user": 1})
    machine.take("time_passes", {"ticks": 5})
    assert [burst.state.value for burst in machine.world.live] == ["online"]
    return machine


def go_on(machine: Steps) -> None:
    for _ in range(40):
        machine.take("tick", {"seconds": 7.0})


def breaks(machine: Steps, name: str) -> None:
    with pytest.raises(Broken) as broken:
        go_on(machine)
    assert broken.value.name == name


def test_a_record_that_is_lost_under_a_burst_is_seen(machine: Steps) -> None:
    records = machine.world.lead.disk.records
    for key in [key for key in records if key.startswith("burst/")]:
        del records[key]
    breaks(machine, "recorded")


def test_a_host_that_exists_twice_is_seen(machine: Steps) -> None:
    _, _, burst = machine.world.made()[0]
    burst.made.append(burst.made[0])
    breaks(machine, "disjoint")


def test_a_limit_that_a_new_burst_passes_is_seen(machine: Steps) -> None:
    machine.world.tables["limits"]["max_nodes"] = 2
    machine.world.settings = machine.world._settings()
    machine.take("request", {"nodes": 1, "provider": ""})
    breaks(machine, "limits")


def test_a_record_that_is_too_large_is_seen(machine: Steps) -> None:
    machine.world.lead.disk.write({"burst/x": "x" * 100_000})
    breaks(machine, "bounded")


def test_an_order_for_a_job_that_is_not_burstable_is_seen(machine: Steps) -> None:
    machine.take("submit_plain", {"nodes": 1})
    machine.world.lead.hold(sorted(machine.world.lead.plain))
    breaks(machine, "harm")


def test_a_burst_that_stays_although_nobody_needs_it_is_seen(machine: Steps) -> None:
    machine.take("running_jobs_end", {})
    machine.world.engine.tick = lambda now: now + 1.0  # type: ignore[method-assign]
    breaks(machine, "use")


def test_a_job_that_stands_in_the_queue_for_absent_ranks_is_seen(
    machine: Steps,
) -> None:
    machine.world.engine.tick = lambda now: now + 1.0  # type: ignore[method-assign]
    machine.take("submit", {"nodes": 8, "user": 1})
    breaks(machine, "harm")


def test_a_burst_that_is_kept_as_the_store_is_full_is_seen(machine: Steps) -> None:
    machine.take("store_is_full", {"full": True})
    machine.take("running_jobs_end", {})

    def tick(now: float) -> float:
        raise StoreError("no space left")

    machine.world.engine.tick = tick  # type: ignore[method-assign]
    breaks(machine, "use")


def test_a_provider_that_is_asked_for_more_than_it_has_is_seen() -> None:
    machine = Steps(SCENARIO)
    machine.world.sites["a"]["total"] = 2  # which it does not say
    machine.take("submit", {"nodes": 4, "user": 1})
    breaks(machine, "asked")


def test_a_burst_that_is_made_beside_free_own_nodes_is_seen() -> None:
    """For a job that begins later and is told to wait from its submission on."""
    machine = Steps(SCENARIO)
    seen = machine.world.lead.observe

    def observe():
        view = seen()
        jobs = {j: but(v, t_eligible=0.0) for j, v in view.jobs.items()}
        return but(view, jobs=jobs)

    machine.world.lead.observe = observe  # type: ignore[method-assign]
    machine.take("submit_later", {"nodes": 1, "seconds": 15.0, "held": False})
    machine.take("person_stops_queues", {"stopped": True})
    breaks(machine, "use")


def test_time_counts_from_the_second_tick_and_only_while_it_is_so() -> None:
    since = Since()
    for now in (0.0, 10.0, 20.0, 30.0):
        since.note(["x"], now)
    assert since.lasting("x", 9.0)
    assert not since.lasting("x", 10.0)
    since.note([], 40.0)
    assert not since.ticks("x")


def test_an_rpc_that_is_not_answered_has_its_effect_or_not() -> None:
    lead = Steps(SCENARIO).world.lead
    for took_effect in (True, False):
        lead.drained.clear()
        lead.silence.next["drain"] = took_effect
        with pytest.raises(Unreadable):
            lead.drain(frozenset({3}), "x")
        assert bool(lead.drained) == took_effect


@pytest.mark.parametrize("took_effect", [True, False])
def test_a_job_has_its_result_once_though_the_lead_did_not_answer(
    took_effect: bool,
) -> None:
    machine = Steps({"providers": {"a": {"modes": ["joined", "isolated"]}}})
    machine.take("submit_isolated", {"nodes": 3, "duration": 0.0, "held": False})
    machine.take("programs_end", {"status": 0, "runs_for": 0})
    machine.take("rpc_is_not_answered", {"rpc": "finish", "took_effect": took_effect})
    go_on(machine)
    lead = machine.world.lead
    assert lead.silence.came == 1
    (job,) = lead.jobs.values()
    assert job.result == "completed"
    ends = [entry for entry in lead.log if entry[0] in ("finish", "fail")]
    assert ends == [("finish", job.id, "exit status 0")]
