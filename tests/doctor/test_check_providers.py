# SPDX-License-Identifier: MIT
"""Facts to findings: providers, and offers against rank slots."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from burst.config import StandingNodes
from burst.core.plan.slots import find_slots
from burst.core.provider_health import FailureRecord, Health
from burst.doctor.check_providers import (
    check_offers,
    check_probe,
    check_provider,
    check_shared_offers,
)
from burst.doctor.facts import ProviderFacts, ReadFailure
from burst.model.finding import Level, note
from burst.model.shape import Shape
from burst.provider import Offer
from tests.builders import identity
from tests.doctor.reading import NOTE, OK, WRONG, levels, said

BIG = Offer(name="big", shape=Shape(8, 1), max_nodes=4, price=1.5)
SMALL = Offer(name="small", shape=Shape(1), max_nodes=4)
PROVIDER = ProviderFacts(name="here", type="local", offers=(BIG,))
# burst-0 wants 4 cores and a GPU, tiny-0 wants 1 core.
_LEAD = identity("lead-0,burst-0-[0-1],tiny-0-[0-1]")
LEAD = msgspec.structs.replace(_LEAD, shapes=(*_LEAD.shapes[:3], Shape(1), Shape(1)))
SLOTS = find_slots(LEAD, ["burst-0-[0-1]", "tiny-0-[0-1]"])


def provider(**changes: Any) -> ProviderFacts:
    return msgspec.structs.replace(PROVIDER, **changes)


def test_a_try_of_the_way_that_failed_is_wrong() -> None:
    (found,) = check_probe(ReadFailure("no rights", "get some"))
    assert (found.level, found.advice) == (WRONG, "get some")
    assert "could not be tested from there: no rights" in found.what
    assert check_probe([note("x")]) == [note("x")]


def test_what_a_provider_offers_is_told() -> None:
    found = check_provider(provider(offers=(BIG, SMALL)), Health())
    assert [(finding.level, finding.what) for finding in found] == [
        (OK, "offers big: up to 4 nodes of 8 cores, 1 GPU, 1.5 per node and hour"),
        (OK, "offers small: up to 4 nodes of 1 core"),
    ]


def test_a_standing_minimum_of_an_offer_that_there_is_not_is_wrong() -> None:
    standing = (StandingNodes(nodes=1, offer="big"), StandingNodes(nodes=1, offer="x"))
    [_, found] = check_provider(provider(standing=standing), Health())
    assert (found.level, found.what) == (
        WRONG,
        "its table.standing 2: offer: there is no 'x'",
    )


def test_one_cause_is_named_once_whatever_fails_by_it() -> None:
    denied = ReadFailure("invalid key", "give it another")
    other = ReadFailure("no route", "ask the network's people")
    broken = provider(offers=denied, statuses=denied, findings=other)
    health = Health(
        rows={"method/offers": FailureRecord(why="invalid key; give it another")}
    )
    assert [finding.what for finding in check_provider(broken, health)] == [
        "its offers cannot be read: invalid key",
        "its own checks failed: no route",
    ]


@pytest.mark.parametrize(
    ("changes", "health", "expected", "text"),
    [
        ({"enabled": False}, {}, [NOTE], "is not enabled -> set enabled = true"),
        (
            {"trouble": ReadFailure("x.type: no")},
            {},
            [WRONG],
            "x.type: no -> see its sett",
        ),
        (
            {},
            {"rows": {"method/observe": FailureRecord(why="403")}},
            [WRONG, OK],
            "disabled: 403 -> when the cause is fixed: burst enable here",
        ),
        (
            {"offers": ReadFailure("401", "log in")},
            {},
            [WRONG],
            "its offers cannot be read: 401 -> log in",
        ),
        ({"offers": ()}, {}, [WRONG], "it has no offers"),
        (
            {"statuses": ReadFailure("503")},
            {},
            [OK, WRONG],
            "its bursts cannot be listed: 503",
        ),
        (
            {"findings": ReadFailure("ValueError: x")},
            {},
            [OK, WRONG],
            "its own checks failed: ValueError: x",
        ),
        ({"findings": [note("slow", "wait")]}, {}, [OK, NOTE], "slow -> wait"),
        (
            {},
            {
                "rows": {
                    "spec/big/burst-0/2": FailureRecord(1, 9.0, why="no team label")
                }
            },
            [OK, NOTE],
            "bursts of big of size 2 were refused: no team label -> they are tried",
        ),
        (
            {},
            {"rows": {"spec/big//0": FailureRecord(1, 9.0, why="no root")}},
            [OK, NOTE],
            "bursts of big were refused: no root",
        ),
    ],
)
def test_what_is_wrong_with_a_provider_is_told(
    changes: dict[str, Any], health: dict[str, Any], expected: list[Level], text: str
) -> None:
    found = check_provider(provider(**changes), Health(**health))
    assert levels(found) == expected
    assert text in said(found)


def test_offers_and_slots_that_fit_are_fine() -> None:
    assert levels(check_offers([PROVIDER], SLOTS)) == [OK]


@pytest.mark.parametrize("providers", [[], [provider(enabled=False, offers=())]])
def test_nobody_to_bring_nodes_is_wrong(providers: list[ProviderFacts]) -> None:
    found = check_offers(providers, SLOTS)
    assert levels(found) == [WRONG]
    assert "add a table [providers.NAME] with one of the types command, " in said(found)


@pytest.mark.parametrize("offers", [(), ReadFailure("401")])
def test_offers_that_are_not_known_are_not_compared(offers: object) -> None:
    assert check_offers([provider(offers=offers)], SLOTS) == []


def test_without_slots_there_is_nothing_to_compare() -> None:
    assert check_offers([PROVIDER], ()) == []


def test_an_offer_for_no_slot_is_noted() -> None:
    found = check_offers([provider(offers=(BIG, SMALL))], SLOTS[:1])
    assert levels(found) == [NOTE]
    text = "offer here/small fits no rank slot: here/small has 1 core; burst-0 wants"
    assert text in said(found)


def test_a_slot_without_an_offer_is_noted() -> None:
    found = check_offers([provider(offers=(SMALL,))], SLOTS)
    assert levels(found) == [NOTE]
    assert "no offer fits rank slot burst-0: here/small has 1 core; bur" in said(found)


def test_a_slot_that_is_kept_for_a_provider_is_for_its_offers_alone() -> None:
    kept = msgspec.structs.replace(
        LEAD, properties={"gke": frozenset({1, 2}), "lent": frozenset({1, 2, 3, 4})}
    )
    slots = find_slots(kept, ["burst-0-[0-1]", "tiny-0-[0-1]"])
    cloud = provider(name="gke", offers=(SMALL,))
    found = check_offers([PROVIDER, cloud], slots)
    assert levels(found) == [NOTE]
    assert (
        "no offer fits rank slot burst-0: here/big has 8 cores, 1 GPU, gke/small has"
        " 1 core; burst-0 wants 4 cores, 1 GPU and is kept for gke -> give it larger"
    ) in said(found)
    # Without a provider of that name the property keeps nobody out.
    assert levels(check_offers([PROVIDER], slots)) == [OK]


def test_an_offer_whose_provider_may_lease_no_slot_is_told_how_it_gets_one() -> None:
    kept = msgspec.structs.replace(LEAD, properties={"gke": frozenset({1, 2})})
    slots = find_slots(kept, ["burst-0-[0-1]"])
    cloud = provider(name="gke", offers=(BIG,))
    found = check_offers([PROVIDER, cloud], slots)
    assert levels(found) == [NOTE]
    assert (
        "offer here/big fits no rank slot: here/big has 8 cores, 1 GPU; burst-0 wants"
        " 4 cores, 1 GPU and is kept for gke -> declare rank slots for the provider"
    ) in said(found)


def test_nothing_is_told_of_slots_that_an_unread_offer_may_fit() -> None:
    kept = msgspec.structs.replace(LEAD, properties={"gke": frozenset({1, 2})})
    slots = find_slots(kept, ["burst-0-[0-1]", "tiny-0-[0-1]"])
    tiny = provider(offers=(SMALL,))
    assert levels(check_offers([tiny], slots, {"gke"})) == [OK]
    broken = provider(name="gke", offers=ReadFailure("401"))
    (found,) = check_offers([tiny, broken], slots)
    assert found.what == "every offer that is known fits a rank slot"
    assert levels(check_offers([tiny, provider(name="gke", offers=())], slots)) == [
        NOTE
    ]


def test_nodes_that_users_share_are_to_run_the_jobs_of_all() -> None:
    alone = msgspec.structs.replace(BIG, guests=False)
    found = check_shared_offers([provider(offers=(alone, SMALL))])
    assert levels(found) == [NOTE]
    assert "followers of here/big run jobs of the owner alone" in said(found)
    for well in (
        provider(offers=(BIG, SMALL)),
        provider(offers=ReadFailure("401")),
        provider(offers=(alone,), enabled=False),
    ):
        assert check_shared_offers([well]) == []
