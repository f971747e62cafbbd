# SPDX-License-Identifier: MIT
"""Checks the providers, and whether their offers fit the lead's rank slots."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Sequence, Set
from typing import NamedTuple

from burst.config import Settings, StandingNodes
from burst.config.policy import as_tuple
from burst.config.standing import check_standing
from burst.core.cooldowns import refused_specs
from burst.core.plan.offers import price_of
from burst.core.plan.slots import RankSlot, may_lease, only_for
from burst.core.provider_health import Health
from burst.doctor.facts import ProviderFacts, ReadFailure
from burst.errors import ConfigError
from burst.model.finding import Finding, note, ok, wrong
from burst.provider import Offer
from burst.provider_type import installed_types

_LARGER = "give it larger nodes, or declare smaller ones in the lead's R"
_DIFFERS = (
    "here it can be read; if that stays: compare the environment of the daemon with"
    " this shell's"
)
_OWN_SLOTS = (
    "declare rank slots for the provider of the offer, or for any: burst lead add-slot"
)


def check_provider(facts: ProviderFacts, health: Health) -> list[Finding]:
    """Check one provider by its answers, and by its recorded health."""
    if not facts.enabled:
        return [note("is not enabled", "set enabled = true to use it")]
    if facts.trouble:
        return [wrong(facts.trouble.what, facts.trouble.advice or "see its settings")]
    found = []
    causes: set[str] = set()

    def tell(what: str, failure: ReadFailure) -> None:
        # One cause, such as a wrong key, may fail all its calls; report it once.
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
        found += _check_standing(facts.standing, facts.offers)
    if isinstance(facts.statuses, ReadFailure):
        tell("its bursts cannot be listed", facts.statuses)
    if isinstance(facts.findings, ReadFailure):
        tell("its own checks failed", facts.findings)
    else:
        found += [each for each in facts.findings if each.what not in causes]
    remedy = f"when the cause is fixed: burst enable {facts.name}"
    found += [
        note(text, f"they are tried now and then; {remedy}")
        for text in _refused(facts, health)
    ]
    if health.disabled and not any(health.disabled.startswith(c) for c in causes):
        found.insert(0, wrong(f"it is disabled: {health.disabled}", remedy))
    return found


def check_daemon_reads(facts: ProviderFacts, trouble: str) -> list[Finding]:
    """Check whether the running daemon can read a provider, too.

    `trouble` is why it could not; empty if it could. Its environment may be another.
    """
    if not trouble or facts.trouble or isinstance(facts.statuses, ReadFailure):
        return []
    what = f"the daemon could not read it when it last tried: {trouble}"
    return [wrong(what, _DIFFERS)]


def _check_standing(
    standing: Sequence[StandingNodes], offers: Sequence[Offer]
) -> Iterator[Finding]:
    """Check the minimums against the offers, which the settings alone may not tell."""
    try:
        check_standing(standing, [offer.name for offer in offers], "its table")
    except ConfigError as error:
        yield wrong(error.what, error.advice)


def _refused(facts: ProviderFacts, health: Health) -> Iterator[str]:
    offers = [] if isinstance(facts.offers, ReadFailure) else facts.offers
    for offer in offers:
        for told in refused_specs(health, offer.name):
            size = f" of size {told['nodes']}" if told["nodes"] else ""
            yield f"bursts of {offer.name}{size} were refused: {told['why']}"


def check_probe(
    found: Sequence[Finding] | ReadFailure,
) -> Sequence[Finding]:
    """Return the findings of a probe from where followers run."""
    if isinstance(found, ReadFailure):
        text = (
            f"the connection of followers to the lead could not be tested: {found.what}"
        )
        return [wrong(text, found.advice or "try again")]
    return found


def check_offers(
    providers: Sequence[ProviderFacts],
    slots: Sequence[RankSlot],
    others: Set[str] = frozenset(),
) -> list[Finding]:
    """Check which offer can fill which rank slot.

    `others` are the names of enabled providers that were not asked.
    """
    enabled = others | {facts.name for facts in providers if facts.enabled}
    if not enabled:
        return [_none_enabled(providers)]
    read = {
        facts.name: facts.offers
        for facts in providers
        if not (facts.trouble or isinstance(facts.offers, ReadFailure))
    }
    offers = [(name, offer) for name in read for offer in read[name]]
    if not offers or not slots:
        return []
    rows = [_SlotNeed(slot, only_for(slot, enabled)) for slot in slots]
    unfit = [each for each in offers if not any(row.takes(*each) for row in rows)]
    unread = enabled - read.keys()
    if len(unfit) == len(offers) and not unread:
        return [wrong(*_misfit("no offer fits any rank slot", offers, rows))]
    found = [
        note(*_misfit(f"offer {_key(*each)} fits no rank slot", [each], rows))
        for each in unfit
    ]
    for row in rows:
        # An offer that could not be read may fit it.
        known = not any(may_lease(name, row.kept) for name in unread)
        if known and not any(row.takes(*each) for each in offers):
            text = f"no offer fits rank slot {row.slot.name}"
            found.append(note(*_misfit(text, offers, [row])))
    if found:
        return found
    if unread:
        return [ok("every offer that is known fits a rank slot")]
    return [ok("every rank slot fits an offer, and every offer fits a rank slot")]


def _none_enabled(providers: Sequence[ProviderFacts]) -> Finding:
    if names := ", ".join(facts.name for facts in providers):
        return wrong(
            f"no provider is enabled, so no burst can be made: {names}",
            "set enabled = true in the table of one",
        )
    types = ", ".join(installed_types())
    return wrong(
        "no provider is configured, so no burst can be made",
        f"add a table [providers.NAME] with one of the types {types}",
    )


def check_shared_offers(providers: Sequence[ProviderFacts]) -> list[Finding]:
    """Check whether guests' jobs may start on nodes that cannot run them.

    For a lead with guests who may share lent nodes: Flux itself starts any of their
    jobs on an idle lent node, whoever it was made for.
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


def check_lease_ends(
    providers: Sequence[ProviderFacts], settings: Settings
) -> list[Finding]:
    """Check whether the cost of bursts ends if the daemon is lost."""
    endless = [
        f"{facts.name}/{offer.name}"
        for facts in providers
        if not isinstance(facts.offers, ReadFailure)
        for offer in facts.offers
        if offer.fee or price_of(facts.name, offer, settings.prices)[0]
        if not offer.lifetime
    ]
    if not endless or not math.isinf(settings.deadlines.lease):
        return []
    return [
        note(
            f"bursts of {', '.join(endless)} cost money and have no lease: if the"
            " daemon is lost, nothing ends them",
            "set [deadlines] lease, or the lifetime of a provider that has one, longer"
            " than your longest job",
        )
    ]


def check_prices(
    providers: Sequence[ProviderFacts], settings: Settings
) -> list[Finding]:
    """Check whether the budgets limit the nodes of each offer.

    A price of 0 in `[prices]` says that they are free.
    """
    limited = [as_tuple(budget.match.provider) for budget in settings.budget]
    unpriced = [
        f"{facts.name}/{offer.name}"
        for facts in providers
        if not isinstance(facts.offers, ReadFailure)
        for offer in facts.offers
        if price_of(facts.name, offer, settings.prices) == (0.0, "offer")
        if any(not names or facts.name in names for names in limited)
    ]
    if not unpriced:
        return []
    return [
        note(
            f"{', '.join(unpriced)}: no price is set, so that no budget limits nodes",
            "set the price of a node-hour under [prices], 0 for what is free",
        )
    ]


def check_price_keys(
    providers: Sequence[ProviderFacts], settings: Settings
) -> Iterator[Finding]:
    """Find keys of `[prices]` that name no offer, so that they set no price."""
    sold = {
        facts.name: [offer.name for offer in facts.offers]
        for facts in providers
        if facts.enabled and not facts.trouble
        if not isinstance(facts.offers, ReadFailure)
    }
    for key in settings.prices:
        provider, _, offer = key.partition(".")
        names = sold.get(provider, ())
        if names and offer not in names:
            close = difflib.get_close_matches(offer, names, 1)
            yield note(
                f"prices.{key} sets no price: {provider} has no offer {offer}",
                f"did you mean {provider}.{close[0]}?"
                if close
                else f"its offers are {', '.join(names)}",
            )


class _SlotNeed(NamedTuple):
    """A rank slot, and the only providers that may lease it; empty for any."""

    slot: RankSlot
    kept: frozenset[str]

    def takes(self, provider: str, offer: Offer) -> bool:
        shaped = offer.shape.holds(self.slot.shape)
        return shaped and may_lease(provider, self.kept)

    def __str__(self) -> str:
        kept = f" and is kept for {' and '.join(sorted(self.kept))}"
        return f"{self.slot.name} needs {self.slot.shape}{kept if self.kept else ''}"


def _misfit(
    what: str, offers: Sequence[tuple[str, Offer]], rows: Sequence[_SlotNeed]
) -> tuple[str, str]:
    """Return the text about offers that fit none of these slots, and the advice."""
    has = ", ".join(f"{_key(*each)} has {each[1].shape}" for each in offers)
    text = f"{what}: {has}; {', '.join(map(str, rows))}"
    for row in rows:
        if any(may_lease(name, row.kept) for name, _ in offers):
            return text, _LARGER
    return text, _OWN_SLOTS


def _key(provider: str, offer: Offer) -> str:
    return f"{provider}/{offer.name}"


def _describe(offer: Offer) -> str:
    price = f", {offer.price:g} per node-hour" if offer.price else ""
    fee = f", {offer.fee:g} per burst and hour" if offer.fee else ""
    nodes = f"up to {offer.max_nodes} nodes of {offer.shape}"
    return f"offers {offer.name}: {nodes}{price}{fee}"
