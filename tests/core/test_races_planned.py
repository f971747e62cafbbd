# SPDX-License-Identifier: MIT
"""The second burst of a race is planned at another provider, of what others leave."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from burst.core.placement.plan import Demand, Plan
from burst.core.provider_health import Health, OfferHealth, RefusedCall
from burst.model.lead import Bootstrap, HostEntry
from burst.model.reason import Reason
from burst.model.request import ResourceRequest
from burst.model.shape import Shape
from tests.builders import NODE, T0, identity, offer, slots, whole
from tests.core.plans import demand, leases, plan

TWO = {"kube": [offer(price=1.0)], "gke": [offer(price=2.0)]}
FIRST = '{"hostlist":["burst-0-[0-3]"]}'


def racer(
    number: int, request: ResourceRequest, duration: float = 0.0, **fields: Any
) -> Demand:
    """A job whose rule has two providers raced."""
    wish = {key: fields.pop(key) for key in ("max_price",) if key in fields}
    made: Demand = demand(number, request, **fields)
    preferences = msgspec.structs.replace(
        made.preferences, rule="quick", race=True, **wish
    )
    return msgspec.structs.replace(made, preferences=preferences, duration=duration)


def words(made: Plan) -> list[str]:
    return [proposal.race for proposal in made.proposals]


def test_the_best_offers_of_two_providers_get_a_burst_each() -> None:
    made = plan(
        racer(1, whole(2)),
        offers={
            "far": [offer(price=3.0)],
            "gke": [offer(price=2.0)],
            "kube": [offer(price=1.0), offer("large", price=1.5)],
        },
    )

    assert leases(made) == [("burst-0", "kube", 2, [1]), ("burst-1", "gke", 2, [1])]
    first, second = (proposal.lease for proposal in made.proposals)
    assert first.race == second.race == first.id != second.id
    assert first.userids == second.userids == (100,)
    assert words(made) == [
        f"raced with {second.id} of gke/small: the first that is online keeps the jobs",
        f"raced with {first.id} of kube/small: the first that is online keeps the jobs",
    ]
    assert made.decisions[1].text() == (
        f"2 nodes of kube/small for it as {first.id}, at 1 for a node and hour as"
        f" offered; {words(made)[0]}"
    )


def test_jobs_of_one_race_share_both_bursts() -> None:
    jobs = [racer(1, whole(1)), racer(2, slots(3)), racer(3, slots(1), duration=60.0)]

    assert leases(plan(*jobs, offers=TWO)) == [
        ("burst-0", "kube", 2, [1, 2, 3]),
        ("burst-1", "gke", 2, [1, 2, 3]),
    ]


def test_jobs_whose_rule_does_not_ask_for_it_are_not_raced_along() -> None:
    made = plan(racer(1, whole(1)), demand(2, whole(1)), offers=TWO)

    assert leases(made) == [
        ("burst-0", "kube", 1, [1]),
        ("burst-0", "gke", 1, [1]),
        ("burst-1", "kube", 1, [2]),
    ]
    assert words(made)[2] == ""


def test_others_are_served_before_a_second_burst() -> None:
    made = plan(racer(1, whole(4)), demand(2, whole(4)), offers=TWO)

    assert leases(made) == [("burst-0", "kube", 4, [1]), ("burst-1", "kube", 4, [2])]
    busy = "every rank slot that would do is leased or not offline"
    assert words(made) == [f"not raced, as gke/small is not to be had: {busy}", ""]
    assert made.proposals[0].lease.race == ""


def test_one_large_slot_holds_both() -> None:
    lead = identity("lead-[0-1],burst-0-[0-7]")
    made = plan(racer(1, whole(3)), offers=TWO, lead=lead)

    assert [p.lease.ranks for p in made.proposals] == [(2, 3, 4), (5, 6, 7)]
    assert made.proposals[1].lease.hosts == ("burst-0-3", "burst-0-4", "burst-0-5")


def test_slots_that_are_kept_for_a_job_are_kept_from_a_second_burst() -> None:
    lead = identity("lead-[0-1],burst-0-[0-7]")
    made = plan(racer(1, whole(3)), demand(2, whole(1), user=7), offers=TWO, lead=lead)

    assert len(made.proposals) == 1
    assert made.reservation is not None


def test_a_slot_that_only_one_burst_may_have_is_not_shared() -> None:
    hosts = "lead-[0-1],burst-0-[0-3]"
    through = HostEntry(host="burst-0-[1-3]", parent="burst-0-0")
    lead = identity(hosts, bootstrap=Bootstrap(hosts=(HostEntry(host=hosts), through)))

    assert len(plan(racer(1, whole(2)), offers=TWO, lead=lead).proposals) == 1


@pytest.mark.parametrize(
    "job",
    [
        racer(1, whole(2), coming=1),
        racer(1, whole(6)),
        demand(1, whole(2)),
        demand(None, whole(2), user=None),
    ],
    ids=["has a part", "several bursts", "no such rule", "request"],
)
def test_what_is_not_raced(job: Demand) -> None:
    lead = identity("lead-[0-1],burst-0-[0-3],burst-1-[0-3],burst-2-[0-7]")
    small = {name: [offer(max_nodes=4, price=1.0)] for name in ("kube", "gke")}
    made = plan(job, offers=small, lead=lead)

    assert {(p.lease.provider, p.lease.race, p.race) for p in made.proposals} == {
        ("kube", "", "")
    }


LACKS = OfferHealth(failures=1, until=T0 + 60, nodes=2)
OFF = RefusedCall("no", T0 + 60)


@pytest.mark.parametrize(
    ("why", "job", "fields"),
    [
        ("there is no other provider", {}, {"offers": {"kube": [offer(price=1.0)]}}),
        ("gke/small is not to be had: the job asks for", {"provider": "kube"}, {}),
        ("gke/small is not to be had: costs 2.0", {"max_price": 1.5}, {}),
        (
            "gke/small is not to be had: its nodes have",
            {},
            {"offers": TWO | {"gke": [offer(shape=Shape(1), price=2.0)]}},
        ),
        (
            "gke/small is not to be had: sells 1 nodes",
            {},
            {"offers": TWO | {"gke": [offer(max_nodes=1, price=2.0)]}},
        ),
        (
            "gke/small is not to be had: jobs run on a burst of it for",
            {"duration": 7200.0},
            {"offers": TWO | {"gke": [offer(lifetime=3600.0, price=2.0)]}},
        ),
        (
            "there is no other provider",
            {},
            {"offers": TWO | {"gke": [offer(modes=("isolated",), price=2.0)]}},
        ),
        (
            "gke/* is not to be had: provider gke has",
            {},
            {"offers": TWO | {"gke": None}},
        ),
        (
            "gke/small is not to be had: provider gke is disabled",
            {},
            {"health": {"gke": Health(refused={"offers": OFF})}},
        ),
        (
            "gke/small is not to be had: had no capacity",
            {},
            {"health": {"gke": Health(offers={"small": LACKS})}},
        ),
        (
            "gke/small is not to be had: limit of 1 bursts",
            {},
            {"limits": {"max_bursts": 1}},
        ),
        (
            "gke/small is not to be had: limit of 3 nodes",
            {},
            {"limits": {"max_nodes_per_user": 3}},
        ),
        ("gke/small is not to be had: every", {}, {"taken": ("burst-1",)}),
    ],
)
def test_why_only_one_is_planned_is_said(
    why: str, job: dict[str, Any], fields: dict[str, Any]
) -> None:
    made = plan(racer(1, whole(2), **job), **{"offers": TWO, **_whole_slots(fields)})

    (proposal,) = made.proposals
    assert proposal.lease.provider == "kube"
    assert proposal.race.startswith(f"not raced, as {why}"), proposal.race
    assert made.decisions[1].reason is Reason.PROPOSED
    assert proposal.race in made.decisions[1].text()


def _whole_slots(fields: dict[str, Any]) -> dict[str, Any]:
    """Slots that two nodes fill, so that one leaves nothing to others."""
    return {"lead": identity("lead-[0-1],burst-0-[0-1],burst-1-[0-1]"), **fields}


def test_both_are_on_ranks_that_all_the_jobs_may_have() -> None:
    lead = identity("lead-[0-1],burst-0-[0-3],burst-1-[0-3]")
    jobs = [racer(1, whole(1)), racer(2, whole(1, constraint=FIRST))]
    made = plan(*jobs, offers=TWO, lead=lead)
    assert [p.lease.ranks for p in made.proposals] == [(2, 3), (4, 5)]

    made = plan(racer(1, whole(3, constraint=FIRST)), offers=TWO, lead=lead)
    assert [p.lease.ranks for p in made.proposals] == [(2, 3, 4)]


def test_both_have_nodes_of_one_shape() -> None:
    lead = identity("lead-[0-1],burst-0-[0-1],burst-1-[0-3],burst-2-[0-3]")
    shapes = (*lead.shapes[:2], *[Shape(8)] * 2, *lead.shapes[4:])
    lead = msgspec.structs.replace(lead, shapes=shapes)
    large = {name: [offer(shape=Shape(8, 1))] for name in ("kube", "gke")}
    made = plan(racer(1, whole(4)), offers=large, lead=lead)

    assert [p.lease.slot for p in made.proposals] == ["burst-1", "burst-2"]
    assert {p.lease.shape for p in made.proposals} == {NODE}


def test_a_provider_on_trial_gets_one_burst_of_two_races() -> None:
    lead = identity("lead-[0-1]," + ",".join(f"burst-{n}-[0-1]" for n in range(4)))
    made = plan(
        racer(1, whole(2), user=1),
        racer(2, whole(2), user=2),
        offers=TWO,
        lead=lead,
        health={"gke": Health(trial=True)},
    )

    assert [(p.lease.provider, *p.jobs) for p in made.proposals] == [
        ("kube", 1),
        ("gke", 1),
        ("kube", 2),
    ]
    assert words(made)[2].startswith("not raced, as gke/small is not to be had: ")
