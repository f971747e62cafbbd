# SPDX-License-Identifier: MIT
"""Checks what a follower needs to join: a rank slot, an address, the certificate."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import urlsplit

from burst.config import LeadSettings, Settings
from burst.core.plan.slots import RankSlot
from burst.doctor.facts import EndpointFacts, HandshakeResult, ReadFailure
from burst.model.finding import Finding, note, ok, wrong
from burst.model.host import is_loopback
from burst.model.ranks import format_hostlist, format_idset, parse_hostlist
from burst.provider_type import on_own_host

_WHERE = "set address and port under [lead] to where followers reach it"
_OPEN = (
    "see that the Service's selector is that of the lead's pod, and that a firewall and"
    " NetworkPolicies let its port in"
)


def check_slots(
    slots: Sequence[RankSlot] | ReadFailure, *, awaits_restart: bool = False
) -> list[Finding]:
    """Check that the lead has rank slots, and that none of them has rank 0.

    Slots that a lead lacks which `awaits_restart` are told by `check_adopted`.
    """
    if awaits_restart and (isinstance(slots, ReadFailure) or not slots):
        return []
    if isinstance(slots, ReadFailure):
        return [wrong(slots.what, slots.advice)]
    if not slots:
        return [
            wrong(
                "the lead has no rank slots: no host has a name such as burst-0-1,"
                " and [lead] slots is empty",
                "ranks are fixed when a lead starts: declare some by `burst lead adopt`"
                " or, in new files, `burst lead init DIR --slot 'burst-0-[0-3]'`; then"
                " restart it",
            )
        ]
    found = []
    for slot in slots:
        text = (
            f"{slot.name}: ranks {format_idset(slot.ranks)},"
            f" {format_hostlist(slot.hosts)}, each {slot.shape}"
        )
        if 0 in slot.ranks:
            advice = "leave the lead's own hosts out of [lead] slots"
            found.append(wrong(f"{text}; rank 0 is the lead itself", advice))
        else:
            found.append(ok(text))
    return found


def check_adopted(added: Sequence[str], hosts: Sequence[str]) -> list[Finding]:
    """Check that the lead has the slots, hostlists, that its files were given."""
    lacking = [each for each in added if not set(parse_hostlist(each)) <= set(hosts)]
    if not lacking:
        return []
    return [
        wrong(
            "the lead was not restarted since its files were given"
            f" {', '.join(lacking)}",
            "restart Flux once `burst lead check` says that this is safe",
        )
    ]


def check_certificate(facts: EndpointFacts) -> list[Finding]:
    """Check the certificate's file, and whether the lead uses this certificate."""
    if not facts.certificate:
        return [
            wrong(
                "the lead's configuration names no certificate, so no follower can"
                " join",
                "set curve_cert under [bootstrap]; `burst lead init DIR` does, and"
                " `burst keygen` makes one",
            )
        ]
    if isinstance(facts.keys, ReadFailure):
        return [wrong(facts.keys.what, facts.keys.advice)]
    text = (
        f"{facts.certificate}: certificate of {facts.keys}, readable by this user only"
    )
    if facts.handshake is HandshakeResult.ACCEPTED:
        return [ok(f"{text}; the lead uses it")]
    return [ok(text)]


def check_endpoint(facts: EndpointFacts, settings: Settings) -> list[Finding]:
    """Check whether the lead listens at the address that followers connect to."""
    if isinstance(facts.endpoint, ReadFailure):
        return [wrong(facts.endpoint.what, facts.endpoint.advice)]
    if not facts.endpoint:
        return [wrong("the lead does not say where followers can reach it", _WHERE)]
    found = [_reached(facts, settings.lead)]
    own, told = urlsplit(facts.own).port, settings.lead.port
    if own and told and own != told:
        found.append(
            note(
                f"followers connect to port {told}, but the lead listens on {own}",
                "this works only if something forwards the port, such as a NodePort"
                " Service",
            )
        )
    elsewhere = sorted(
        name
        for name, table in settings.providers.items()
        if table.enabled and not on_own_host(table.type)
    )
    if elsewhere and is_loopback(urlsplit(str(facts.endpoint)).hostname or ""):
        found.append(
            note(
                f"followers are told {facts.endpoint}: those of {', '.join(elsewhere)}"
                " cannot join unless they are on this host",
                _WHERE,
            )
        )
    return found


def _reached(facts: EndpointFacts, lead: LeadSettings) -> Finding:
    where, reached = facts.endpoint, facts.handshake
    if isinstance(reached, ReadFailure):
        return wrong(f"{where}: {reached.what}", reached.advice or _WHERE)
    if reached in {
        HandshakeResult.ACCEPTED,
        HandshakeResult.UNVERIFIED,
        HandshakeResult.REJECTED,
        HandshakeResult.NO_ANSWER,
    }:
        return _answered(facts)
    advice = _OPEN if lead.is_learnt else _WHERE
    if reached is HandshakeResult.REFUSED:
        return wrong(f"{where}: nothing listens there ({facts.detail})", advice)
    text = f"{where}: cannot be reached from here ({facts.detail})"
    if lead.address and not lead.is_learnt:
        return note(text, "this is fine if followers can reach it from their network")
    return wrong(text, advice)


def _answered(facts: EndpointFacts) -> Finding:
    where = facts.endpoint
    if facts.handshake is HandshakeResult.ACCEPTED:
        return ok(f"{where}: the lead listens there and accepts its certificate")
    if facts.handshake is HandshakeResult.UNVERIFIED:
        return note(
            f"{where}: something listens there; without a usable certificate it"
            " cannot be checked whether it is the lead",
            "see the finding about the certificate",
        )
    if facts.handshake is HandshakeResult.NO_ANSWER:
        return wrong(
            f"{where}: the program that listens there did not answer as a lead does"
            f" {facts.detail}: it is another program, or the lead is very busy",
            "try again in a moment; `ss -ltnp` shows which program listens",
        )
    return wrong(
        f"{where}: the program that listens there does not accept"
        f" {facts.certificate}: it is"
        " another program, or the lead runs with another certificate",
        "`ss -ltnp` shows which program listens; restart the lead if the file was"
        " changed",
    )
