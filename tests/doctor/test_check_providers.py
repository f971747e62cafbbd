# SPDX-License-Identifier: MIT
"""Facts to findings: providers, and offers against rank slots."""

from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from burst.config import StandingNodes
from burst.core.plan.slots import RankSlot, find_slots
from burst.core.provider_health import FailureRecord, Health
from burst.doctor.check_providers import (
    check_daemon_reads,
    check_lease_ends,
    check_offers,
    check_price_keys,
    check_prices,
    check_probe,
    check_provider,
    check_shared_offers,
)
from burst.doctor.facts import ProviderFacts, ReadFailure
from burst.model.finding import Level, note, wrong
from burst.model.shape import Shape
from burst.provider import Offer
from tests.builders import identity, settings
from tests.doctor.reading import NOTE, OK, WRONG, levels, said

BIG = Offer(name="big", shape=Shape(8, 1), max_nodes=4, price=1.5)
SMALL = Offer(name="small", shape=Shape(1), max_nodes=4)
PROVIDER = ProviderFacts(name="here", type="local", offers=(BIG,))
# burst-0 needs 4 cores and a GPU, tiny-0 needs 1 core.
_LEAD = identity("lead-0,burst-0-[0-1],tiny-0-[0-1]")
LEAD = msgspec.structs.replace(_LEAD, shapes=(*_LEAD.shapes[:3], Shape(1), Shape(1)))
SLOTS = find_slots(LEAD, ["burst-0-[0-1]", "tiny-0-[0-1]"])


def provider(**changes: Any) -> ProviderFacts:
    return msgspec.structs.replace(PROVIDER, **changes)


def test_a_try_of_the_way_that_failed_is_wrong() -> None:
    (found,) = check_probe(ReadFailure("no rights", "get some"))
    assert (found.level, found.advice) == (WRONG, "get some")
    assert "could not be tested: no rights" in found.what
    assert check_probe([note("x")]) == [note("x")]


def test_what_a_provider_offers_is_told() -> None:
    found = check_provider(provider(offers=(BIG, SMALL)), Health())
    assert [(finding.level, finding.what) for finding in found] == [
        (OK, "offers big: up to 4 nodes of 8 cores, 1 GPU, 1.5 per node-hour"),
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
    again = provider(offers=denied, findings=[wrong("invalid key", "x"), note("slow")])
    assert [finding.what for finding in check_provider(again, Health())] == [
        "its offers cannot be read: invalid key",
        "slow",
    ]


def test_a_provider_that_only_the_daemon_cannot_read_is_wrong() -> None:
    found = check_daemon_reads(PROVIDER, "no such host")
    assert levels(found) == [WRONG]
    assert "not read it when it last tried: no such host -> here it" in said(found)
    assert check_daemon_reads(PROVIDER, "") == []
    down = provider(statuses=ReadFailure("no such host"))
    assert check_daemon_reads(down, "no such host") == []


DISABLED = "disabled: 403 -> when the cause is fixed: burst enable here"
UNREAD, UNLISTED = "its offers cannot be read", "its bursts cannot be listed"
NO_LABEL = FailureRecord(1, 9.0, why="no team label")
WERE = "were refused: no team label -> they are tried"


@pytest.mark.parametrize(
    ("changes", "failures", "expected", "text"),
    [
        ({"enabled": False}, {}, [NOTE], "is not enabled -> set enabled = true"),
        ({"trouble": ReadFailure("x: no")}, {}, [WRONG], "x: no -> see its sett"),
        ({}, {"method/observe": FailureRecord(why="403")}, [WRONG, OK], DISABLED),
        (
            {"offers": ReadFailure("401", "log in")},
            {},
            [WRONG],
            f"{UNREAD}: 401 -> log",
        ),
        ({"offers": ()}, {}, [WRONG], "it has no offers"),
        ({"statuses": ReadFailure("503")}, {}, [OK, WRONG], f"{UNLISTED}: 503"),
        (
            {"findings": ReadFailure("odd")},
            {},
            [OK, WRONG],
            "its own checks failed: odd",
        ),
        ({"findings": [note("slow", "wait")]}, {}, [OK, NOTE], "slow -> wait"),
        ({}, {"spec/big/burst-0/2": NO_LABEL}, [OK, NOTE], f"of big of size 2 {WERE}"),
        ({}, {"spec/big//0": NO_LABEL}, [OK, NOTE], f"bursts of big {WERE}"),
    ],
)
def test_what_is_wrong_with_a_provider_is_told(
    changes: dict[str, Any],
    failures: dict[str, FailureRecord],
    expected: list[Level],
    text: str,
) -> None:
    found = check_provider(provider(**changes), Health(rows=failures))
    assert levels(found) == expected
    assert text in said(found)


UNUSED = "offer here/small fits no rank slot: here/small has 1 core; burst-0 needs"
NONE_FITS = "no offer fits rank slot burst-0: here/small has 1 core; bur"


@pytest.mark.parametrize(
    ("offers", "slots", "expected", "text"),
    [
        pytest.param((BIG,), SLOTS, [OK], "", id="they fit"),
        pytest.param((), SLOTS, [], "", id="no offers"),
        pytest.param(ReadFailure("401"), SLOTS, [], "", id="unread offers"),
        pytest.param((BIG,), (), [], "", id="no slots"),
        pytest.param((BIG, SMALL), SLOTS[:1], [NOTE], UNUSED, id="an offer for none"),
        pytest.param((SMALL,), SLOTS, [NOTE], NONE_FITS, id="a slot without an offer"),
    ],
)
def test_offers_are_compared_with_slots(
    offers: Any, slots: Sequence[RankSlot], expected: list[Level], text: str
) -> None:
    found = check_offers([provider(offers=offers)], slots)
    assert levels(found) == expected
    assert text in said(found)


@pytest.mark.parametrize(
    ("providers", "text"),
    [
        ([], "-> add a table [providers.NAME] with one of the types command, "),
        ([provider(enabled=False, offers=())], ": here -> set enabled = true"),
    ],
)
def test_nobody_to_bring_nodes_is_wrong(
    providers: list[ProviderFacts], text: str
) -> None:
    found = check_offers(providers, SLOTS)
    assert levels(found) == [WRONG]
    assert text in said(found)


def kept(*names: str, **properties: set[int]) -> Any:
    """Return rank slots of a lead whose ranks have these properties."""
    its = {name: frozenset(ranks) for name, ranks in properties.items()}
    return find_slots(msgspec.structs.replace(LEAD, properties=its), names)


def test_a_slot_that_is_kept_for_a_provider_is_for_its_offers_alone() -> None:
    slots = kept("burst-0-[0-1]", "tiny-0-[0-1]", gke={1, 2}, lent={1, 2, 3, 4})
    cloud = provider(name="gke", offers=(SMALL,))
    found = check_offers([PROVIDER, cloud], slots)
    assert levels(found) == [NOTE]
    assert (
        "no offer fits rank slot burst-0: here/big has 8 cores, 1 GPU, gke/small has"
        " 1 core; burst-0 needs 4 cores, 1 GPU and is kept for gke -> give it larger"
    ) in said(found)
    # Without a provider of that name the property keeps nobody out.
    assert levels(check_offers([PROVIDER], slots)) == [OK]


def test_an_offer_whose_provider_may_lease_no_slot_is_told_how_it_gets_one() -> None:
    cloud = provider(name="gke", offers=(BIG,))
    found = check_offers([PROVIDER, cloud], kept("burst-0-[0-1]", gke={1, 2}))
    assert levels(found) == [NOTE]
    assert (
        "offer here/big fits no rank slot: here/big has 8 cores, 1 GPU; burst-0 needs"
        " 4 cores, 1 GPU and is kept for gke -> declare rank slots for the provider"
    ) in said(found)


def test_nothing_is_told_of_slots_that_an_unread_offer_may_fit() -> None:
    slots = kept("burst-0-[0-1]", "tiny-0-[0-1]", gke={1, 2})
    tiny, none = provider(offers=(SMALL,)), provider(name="gke", offers=())
    assert levels(check_offers([tiny], slots, {"gke"})) == [OK]
    broken = provider(name="gke", offers=ReadFailure("401"))
    (found,) = check_offers([tiny, broken], slots)
    assert found.what == "every offer that is known fits a rank slot"
    assert levels(check_offers([tiny, none], slots)) == [NOTE]


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


def test_offers_that_cost_money_and_never_end_are_told() -> None:
    ends = msgspec.structs.replace(BIG, name="ends", lifetime=3600.0)
    paid = msgspec.structs.replace(SMALL, name="paid", fee=0.5)
    here = provider(offers=(BIG, SMALL, ends, paid))
    unread = provider(offers=ReadFailure("invalid key", "give it another"))
    [found] = check_lease_ends([here, unread], settings())
    assert found.level is NOTE
    assert "bursts of here/big, here/paid cost money and have no lease" in found.what
    assert "[deadlines] lease" in found.advice
    day = settings(deadlines={"lease": "24h"})
    assert check_lease_ends([here, unread], day) == []
    free = [provider(offers=(SMALL, ends)), unread]
    assert check_lease_ends(free, settings()) == []
    [found] = check_lease_ends(
        free,
        settings(providers={"here": {"type": "local"}}, prices={"here.small": 2.0}),
    )
    assert "bursts of here/small cost" in found.what


def test_nodes_that_no_budget_limits_for_want_of_a_price_are_told() -> None:
    here = [provider(offers=(BIG, SMALL)), provider(offers=ReadFailure("no", "try"))]
    known = {"providers": {each: {"type": "local"} for each in ("here", "there")}}
    assert check_prices(here, settings(**known)) == []
    theirs = {"limit": 1.0, "match": {"provider": "there"}}
    assert check_prices(here, settings(**known, budget=[theirs])) == []
    [found] = check_prices(here, settings(**known, budget=[theirs, {"limit": 1.0}]))
    assert found.level is NOTE
    assert "here/small: no price is set" in found.what
    free = settings(**known, budget=[{"limit": 1.0}], prices={"here.small": 0})
    assert check_prices(here, free) == []


def test_prices_of_offers_that_there_are_not_are_told() -> None:
    unread = provider(name="there", offers=ReadFailure("no", "try"))
    off = provider(name="off", enabled=False, offers=())
    known = {each: {"type": "local"} for each in ("here", "there", "off")}
    keys = ("here.big", "here.bigg", "here.n2", "there.x", "off.x")
    priced = settings(providers=known, prices=dict.fromkeys(keys, 1.0))
    near, far = check_price_keys([provider(offers=(BIG, SMALL)), unread, off], priced)
    assert near.level is far.level is NOTE
    assert near.what == "prices.here.bigg sets no price: here has no offer bigg"
    assert near.advice == "did you mean here.big?"
    assert far.advice == "its offers are big, small"
