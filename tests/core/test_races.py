# SPDX-License-Identifier: MIT
"""Of two bursts that are raced the first that is online keeps the jobs."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from burst.core.actions import ProvisionBurst
from burst.core.burst_story import burst_story
from burst.core.lifecycle import apply, begin
from burst.core.placement.capacity import burst_capacities, missing_nodes
from burst.core.races import race_words, settle_races
from burst.core.records import Records, Transaction
from burst.core.report import burst_row
from burst.core.tick import TickResult, run_tick
from burst.model.burst import Burst, BurstId, Result, State
from burst.model.event import Event
from burst.model.jobid import JobId
from burst.model.lead import LeadView
from burst.model.ranks import format_idset
from burst.model.reason import Reason
from burst.model.record import decode_record, encode_record
from tests.builders import T0, job, offer, settings, view, whole, world
from tests.lifecycles import LEASE

NOW = T0 + 100
ONE = JobId(1)
RULES: dict[str, Any] = {"policy": [{"name": "quick", "race": True}]}
OFFERS = {"kube": (offer(price=1.0),), "gke": (offer(price=2.0),)}
JOIN = ("provision-start", "provision-finish")
ONLINE = (*JOIN, "online")
KUBE = msgspec.structs.replace(
    LEASE, provider="kube", race="burst-0-aaaaaa", price=2.0, userids=(100,)
)
GKE = msgspec.structs.replace(
    KUBE,
    id=BurstId("burst-1-bbbbbb"),
    provider="gke",
    slot="burst-1",
    hosts=("burst-1-0", "burst-1-1"),
    ranks=(6, 7),
)


def at(
    lease: Any, *names: str, jobs: tuple[JobId, ...] = (ONE,), **context: Any
) -> Burst:
    """A burst after these events; the last one with this context."""
    burst = begin(lease, dict.fromkeys(jobs, T0), T0)
    for number, name in enumerate(names):
        ranks = {"ranks": format_idset(lease.ranks), "note": "it is so"}
        facts = {**ranks, **context} if number == len(names) - 1 else ranks
        burst = apply(burst, Event(T0 + 1 + number, name, facts))
    assert not burst.quarantined or "quarantine" in names
    return burst


def settled(*bursts: Burst, lead: LeadView | None = None) -> dict[str, Burst]:
    """The bursts of a race by their provider, after it was looked at."""
    tx = Transaction(Records(bursts={b.id: b for b in bursts}), NOW)
    up = {rank for b in bursts for rank in b.expected}
    settle_races(tx, lead or view(job(1, whole(2)), online=(0, 1, *up)))
    assert tx.health == {}
    return {b.lease.provider: b for b in tx.bursts.values()}


def test_the_first_that_is_online_keeps_the_jobs() -> None:
    for rest in ((), JOIN[:1], JOIN):
        after = settled(at(KUBE, *rest), at(GKE, *ONLINE))
        assert (after["gke"].jobs, after["gke"].racing) == (frozenset({ONE}), False)
        lost = after["kube"]
        assert (lost.state, lost.result, lost.jobs) == (
            State.REAP,
            Result.CANCELED,
            frozenset(),
        )
        assert lost.exception == "raced"


def test_why_is_told_of_both_and_outlives_the_daemon() -> None:
    after = settled(at(KUBE, *JOIN), at(GKE, *ONLINE))
    texts = {
        name: burst_story(burst, settings(), NOW)["events"][-1]["text"]
        for name, burst in after.items()
    }
    won = "it has won its race: it was online first, and keeps the jobs"
    lost = "it failed or was ended (raced): raced: burst-1-bbbbbb of gke has won"
    assert texts == {"kube": lost, "gke": won}
    row = burst_row(after["kube"], world(view()), NOW)
    assert row["note"].startswith("raced: burst-1-bbbbbb of gke has won")
    assert row["race"] == "burst-0-aaaaaa"
    record = decode_record(encode_record(after["gke"]))
    assert record.lease.race == "burst-0-aaaaaa"
    assert [event.name for event in record.events][-1] == "raced"


@pytest.mark.parametrize(
    "others",
    [
        (at(KUBE, *JOIN), at(GKE, *JOIN)),
        (at(KUBE, *JOIN), at(GKE, *ONLINE, ranks="6")),
        (at(KUBE, *JOIN), at(GKE, *ONLINE, "lost")),
        (at(KUBE, *JOIN, jobs=()), at(GKE, *ONLINE, jobs=())),
        (at(KUBE, *ONLINE, "raced"), at(GKE, *ONLINE, "raced")),
        (at(msgspec.structs.replace(KUBE, race=""), *JOIN),),
    ],
    ids=["none", "in part", "lost", "no jobs", "decided", "no race"],
)
def test_while_it_is_open_nothing_changes(others: tuple[Burst, ...]) -> None:
    after = settled(*others)
    assert after == {burst.lease.provider: burst for burst in others}


@pytest.mark.parametrize(
    ("kube", "gke", "winner"),
    [
        (at(KUBE, *ONLINE), at(GKE, *ONLINE), "kube"),
        (
            at(KUBE, *ONLINE),
            at(msgspec.structs.replace(GKE, price=1.0), *ONLINE),
            "gke",
        ),
        (at(KUBE, *ONLINE, ranks="2"), at(GKE, *ONLINE), "gke"),
        (at(KUBE, *ONLINE, "lost"), at(GKE, *ONLINE), "gke"),
        (at(KUBE, *ONLINE, "lost"), at(GKE, *ONLINE, ranks="6"), "kube"),
    ],
    ids=["planned first", "cheaper", "whole", "not lost", "most nodes"],
)
@pytest.mark.parametrize("turned", [False, True])
def test_of_two_that_are_online_one_is_chosen(
    kube: Burst, gke: Burst, winner: str, turned: bool
) -> None:
    after = settled(*((gke, kube) if turned else (kube, gke)))
    kept = {name for name, burst in after.items() if burst.state is State.ONLINE}
    assert kept == {winner}


@pytest.mark.parametrize(
    "ended",
    [
        at(KUBE, *JOIN, "exception", type="failed"),
        at(KUBE, *ONLINE, "drain", result="canceled"),
        at(KUBE, *JOIN, "quarantine"),
    ],
    ids=["failed", "taken down", "quarantined"],
)
def test_what_is_left_goes_on_alone(ended: Burst) -> None:
    after = settled(ended, at(GKE, *JOIN))
    assert after["kube"] is ended
    alone = after["gke"]
    assert (alone.state, alone.jobs, alone.racing) == (
        State.JOIN,
        frozenset({ONE}),
        False,
    )
    assert "goes on alone" in alone.events[-1].context["note"]


def test_one_that_leaves_its_quarantine_late_has_lost() -> None:
    back = at(KUBE, *JOIN, "quarantine", "unquarantine")
    after = settled(back, at(GKE, *JOIN, "raced"))
    assert after["kube"].exception == "raced"
    assert after["gke"].jobs == {ONE}


def test_what_runs_on_the_loser_goes_on_to_its_end() -> None:
    lead = view(job(1, whole(2)), online=(0, 1, 2, 3, 6, 7), allocated=frozenset({3}))
    after = settled(at(KUBE, *JOIN), at(GKE, *ONLINE), lead=lead)
    stays = after["kube"]
    assert (stays.state, stays.jobs, stays.racing) == (State.JOIN, frozenset(), False)
    assert "goes on to its end" in stays.events[-1].context["note"]


def test_where_flux_started_a_job_that_burst_has_won() -> None:
    kube = at(KUBE, *JOIN, "job-start", id="1")
    after = settled(kube, at(GKE, *JOIN))
    assert after["kube"].jobs == {ONE}
    assert after["gke"].exception == "raced"


def test_jobs_that_run_on_both_stay_where_they_run() -> None:
    kube = at(KUBE, *ONLINE, "job-start", jobs=(ONE, JobId(2), JobId(3)), id="1")
    gke = at(GKE, *ONLINE, "job-start", jobs=(ONE, JobId(2), JobId(3)), id="2")
    after = settled(kube, gke)
    assert after["kube"].jobs == {ONE, JobId(2), JobId(3)}
    assert (after["gke"].jobs, after["gke"].state) == (
        frozenset({JobId(2)}),
        State.ONLINE,
    )


def test_two_that_are_raced_count_as_one() -> None:
    lead = view(online=(0, 1))
    pair = [at(KUBE, *JOIN), at(GKE, *JOIN)]
    assert missing_nodes(whole(3), pair, lead) == (1, 2)
    apart = [at(KUBE, *JOIN, "raced"), at(GKE, *JOIN, "raced")]
    assert missing_nodes(whole(3), apart, lead) == (0, 4)
    assert race_words(pair[0], pair) == "; it is raced with burst-1-bbbbbb of gke"
    assert race_words(apart[0], apart) == ""


def test_others_get_no_nodes_of_a_burst_that_is_raced() -> None:
    def rooms(*names: str) -> list[str]:
        made = at(KUBE, *names)
        found = burst_capacities(
            Records(bursts={made.id: made}), view(), settings(), NOW
        )
        return [each.burst for each in found if each.pool]

    assert rooms(*JOIN) == []
    assert rooms(*JOIN, "raced") == [KUBE.id]


def tick(records: Records, *jobs: Any, now: float = NOW, **tables: Any) -> TickResult:
    what = world(view(*jobs, busy=(0, 1)), **OFFERS)
    return run_tick(records, what, settings(**RULES, **tables), now)


def test_both_are_on_record_and_reserved_for_before_either_is_called() -> None:
    made = tick(Records(), job(1, whole(2), duration=60.0))
    first, second = made.records.bursts.values()
    assert first.jobs == second.jobs == {ONE}
    assert first.lease.race == second.lease.race == first.id
    assert made.records.entries.keys() == {first.id, second.id}
    provisioned = [a.burst for a in made.actions if isinstance(a, ProvisionBurst)]
    assert provisioned == [first.id, second.id]
    assert (
        f"raced with {second.id} of gke/small"
        in burst_row(first, world(view()), NOW)["note"]
    )

    again = tick(made.records, job(1, whole(2), duration=60.0), now=NOW + 1)
    assert again.records.bursts.keys() == made.records.bursts.keys()
    assert again.decisions[ONE].reason is Reason.COMING
    assert again.decisions[ONE].text().endswith(f"is raced with {second.id} of gke")


def test_where_money_is_there_for_one_only_one_is_made() -> None:
    """240 s and more on two nodes for 1 an hour are reserved, and for 2 an hour."""
    alone = tick(Records(), job(1, whole(2), duration=60.0)).records.entries
    one, two = sorted(entry.reserved for entry in alone.values())
    for limit, bursts in ((one + two, 2), (one + two - 1, 1)):
        made = tick(
            Records(),
            job(1, whole(2), duration=60.0),
            budget=[{"limit": limit / 1_000_000}],
        )
        assert len(made.records.bursts) == bursts
    said = made.decisions[ONE].text()
    assert "not raced, as gke/small is not to be had: budget everything" in said


def test_a_job_without_money_waits_for_nodes_of_a_race() -> None:
    """It is not failed: it may have what the first job leaves."""
    rules = [{"match": {"nodes": 2}, "race": True}, {"over_budget": "fail"}]
    tables: dict[str, Any] = {"policy": rules}
    first = job(1, whole(2), duration=60.0)
    what = world(view(first, busy=(0, 1)), **OFFERS)
    made = run_tick(Records(), what, settings(**tables), NOW)
    assert len(made.records.bursts) == 2
    money = sorted(entry.reserved for entry in made.records.entries.values())
    small = job(2, whole(1, constraint='{"properties":["burst"]}'), duration=6.0)
    for records, spent in ((Records(), money[0]), (made.records, sum(money))):
        tables["budget"] = [{"limit": spent / 1_000_000}]
        what = world(view(first, small, busy=(0, 1)), **OFFERS)
        again = run_tick(records, what, settings(**tables), NOW + 1)
        assert again.decisions[JobId(2)].reason is Reason.TURNED_DOWN
        bursts = again.records.bursts.values()
        assert {burst.jobs for burst in bursts} == {frozenset({ONE})}


def test_rules_say_for_which_jobs() -> None:
    tables = {"policy": [{"race": True, "match": {"user": "7"}}]}
    what = world(
        view(job(1, whole(1)), job(2, whole(1), userid=7), busy=(0, 1)), **OFFERS
    )
    made = run_tick(Records(), what, settings(**tables), NOW)
    assert sorted(len(b.lease.race) > 0 for b in made.records.bursts.values()) == [
        False,
        True,
        True,
    ]
