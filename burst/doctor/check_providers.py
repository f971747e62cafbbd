# SPDX-License-Identifier: MIT
"""Checks the providers, and whether their offers fit the lead's rank slots."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from burst.core.cooldowns import refused_specs
from burst.core.plan.slots import RankSlot
from burst.core.provider_health import Health
from burst.doctor.facts import ProviderFacts, ReadFailure
from burst.model.finding import Finding, note, ok, wrong
from burst.provider import Offer
from burst.provider_type import installed_types

_DECLARE = "give it larger nodes, or declare smaller ones in the lead's R"


def check_provider(facts: ProviderFacts, health: Health) -> list[Finding]:
    """Check one provider by what it answered, and what is held against it."""
    if not facts.enabled:
        return [note("is not enabled", "set enabled = true to use it")]
    if facts.trouble:
        return [wrong(facts.trouble.what, facts.trouble.advice or "see its settings")]
    found = []
    causes: set[str] = set()

    def tell(what: str, failure: ReadFailure) -> None:
        # One cause, such as a wrong key, has each of its calls fail: it is named once.
        if failure.what not in causes:
            causes.add(failure.what)
            text = f"{what}: {failure.what}"
            found.append(wrong(text, failure.advice or "see its settings"))

    if isinstance(facts.offers, ReadFailure):
        tell("its offers cannot be read", facts.offers)
    elif not facts.offers:
        found.append(wrong("it has no offers", "see its settings"))
    else:
        found += [ok(_describe(offer)) for offer in facts.offers]
    if isinstance(facts.statuses, ReadFailure):
        tell("its bursts cannot be listed", facts.statuses)
    if isinstance(facts.findings, ReadFailure):
        tell("its own checks failed", facts.findings)
    else:
        found += facts.findings
    remedy = f"when the cause is fixed: burst enable {facts.name}"
    found += [
        note(text, f"they are tried now and then; {remedy}")
        for text in _refused(facts, health)
    ]
    if health.disabled and not any(health.disabled.startswith(c) for c in causes):
        found.insert(0, wrong(f"it is disabled: {health.disabled}", remedy))
    return found


def _refused(facts: ProviderFacts, health: Health) -> Iterator[str]:
    offers = [] if isinstance(facts.offers, ReadFailure) else facts.offers
    for offer in offers:
        for told in refused_specs(health, offer.name):
            size = f" of size {told['nodes']}" if told["nodes"] else ""
            yield f"bursts of {offer.name}{size} were refused: {told['why']}"


def check_probe(
    found: Sequence[Finding] | ReadFailure,
) -> Sequence[Finding]:
    """Check what came of trying the way to the lead from over there."""
    if isinstance(found, ReadFailure):
        text = (
            f"the connection to the lead could not be tested from there: {found.what}"
        )
        return [wrong(text, found.advice or "try again")]
    return found


def check_offers(
    providers: Sequence[ProviderFacts], slots: Sequence[RankSlot]
) -> list[Finding]:
    """Check which offer can fill which rank slot."""
    offers = {
        f"{facts.name}/{offer.name}": offer
        for facts in providers
        if not isinstance(facts.offers, ReadFailure)
        for offer in facts.offers
    }
    if not any(facts.enabled for facts in providers):
        return [
            wrong(
                "no provider is configured, so no burst can be made",
                "add a table [providers.NAME] with one of the types"
                f" {', '.join(installed_types())}",
            )
        ]
    if not offers or not slots:
        return []
    if not any(_fits(offer, slot) for offer in offers.values() for slot in slots):
        return [
            wrong(f"no offer fits any rank slot: {_compare(offers, slots)}", _DECLARE)
        ]
    found = []
    for name, offer in offers.items():
        if not any(_fits(offer, slot) for slot in slots):
            text = f"offer {name} fits no rank slot: {_compare({name: offer}, slots)}"
            found.append(note(text, _DECLARE))
    for slot in slots:
        if not any(_fits(offer, slot) for offer in offers.values()):
            text = f"no offer fits rank slot {slot.name}: {_compare(offers, [slot])}"
            found.append(note(text, _DECLARE))
    return found or [
        ok("every rank slot fits an offer, and every offer fits a rank slot")
    ]


def check_shared_offers(providers: Sequence[ProviderFacts]) -> list[Finding]:
    """Check whether guests' jobs may come to nodes that do not run them.

    For a lead with guests who may share lent nodes: Flux itself starts any job of
    theirs on a lent node that is idle, whoever it was made for.
    """
    owners = [
        f"{facts.name}/{offer.name}"
        for facts in providers
        if facts.enabled and not isinstance(facts.offers, ReadFailure)
        for offer in facts.offers
        if not offer.guests
    ]
    if not owners:
        return []
    return [
        note(
            f"followers of {', '.join(owners)} run jobs of the owner alone, and users"
            " share lent nodes: a guest's job that Flux starts there fails",
            "keep users apart ([plan] share_users and [intake] any_job false), or let"
            " that provider run jobs of guests",
        )
    ]


def _fits(offer: Offer, slot: RankSlot) -> bool:
    return offer.shape.holds(slot.shape)


def _compare(offers: Mapping[str, Offer], slots: Sequence[RankSlot]) -> str:
    has = ", ".join(f"{name} has {offer.shape}" for name, offer in offers.items())
    want = ", ".join(f"{slot.name} wants {slot.shape}" for slot in slots)
    return f"{has}; {want}"


def _describe(offer: Offer) -> str:
    price = f", {offer.price:g} per node and hour" if offer.price else ""
    fee = f", {offer.fee:g} per burst and hour" if offer.fee else ""
    nodes = f"up to {offer.max_nodes} nodes of {offer.shape}"
    return f"offers {offer.name}: {nodes}{price}{fee}"
