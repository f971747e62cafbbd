# SPDX-License-Identifier: MIT
"""`burst doctor`: looks at all that bursts rest on, and says what to do.

Facts are gathered in `collect`, each by itself; the `judge_…` modules are pure. What
keeps one check from being made is a finding, and the others are made all the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import msgspec

from burst.config import Settings
from burst.core.placement.slots import RankSlot, find_slots
from burst.core.provider_health import Health
from burst.core.world import Books
from burst.doctor import collect
from burst.doctor.attempt import attempt
from burst.doctor.check_intake import judge_intake
from burst.doctor.check_network import (
    judge_certificate,
    judge_endpoint,
    judge_slots,
)
from burst.doctor.check_providers import judge_market, judge_probe, judge_provider
from burst.doctor.check_runtime import (
    judge_daemon,
    judge_orphans,
    judge_ranks,
    judge_records,
)
from burst.doctor.check_setup import (
    judge_boot,
    judge_flux,
    judge_lead,
    judge_settings,
)
from burst.doctor.facts import (
    LeadFacts,
    ProviderFacts,
    SettingsFacts,
    Trouble,
)
from burst.errors import ConfigError
from burst.flux.boot_info import read_boot
from burst.flux_setup.check import read_instance
from burst.lead import Lead
from burst.model.finding import Finding, note
from burst.model.lead import LeadIdentity
from burst.runtime.connect import as_followers_see_it, connect, is_flux

__all__ = ["Question", "SettingsFacts", "Trouble", "diagnose"]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be looked at."""

    settings: SettingsFacts
    uri: str = ""
    """Of the command line."""
    provider: str = ""
    """Ask this provider only; empty for all."""
    probe: Callable[[str], None] | None = None
    """Let providers try from over there whether they reach the lead; hears for what is
    waited. None: make nothing."""


def diagnose(question: Question) -> list[Finding]:
    """Return what was found, in the order in which one thing rests on the other.

    Raises ConfigError where there is no such provider.
    """
    known, only = question.settings.settings.providers, question.provider
    if only and only not in known and not question.settings.trouble:
        raise ConfigError(
            f"there is no provider {only!r} in the settings",
            f"there are {', '.join(known) or 'none'}",
        )
    return list(_examine(question))


def _examine(question: Question) -> Iterator[Finding]:
    settings = question.settings.settings
    yield from _about("settings", judge_settings(question.settings))
    uri, source = _where(question)
    flux = collect.read_flux()
    yield from _about("flux", judge_flux(flux, is_flux(uri)))
    with _connected(uri, settings) as lead:
        identity = lead if isinstance(lead, Trouble) else attempt(lead.identity)
        boot = None
        if not isinstance(lead, Trouble) and is_flux(uri):
            boot = attempt(lambda: read_boot(uri))
        facts = LeadFacts(uri=uri, source=source, identity=identity, boot=boot)
        yield from _about("lead", judge_lead(facts, flux))
        if isinstance(lead, Trouble) or isinstance(identity, Trouble):
            yield from _without_lead(question)
        else:
            yield from _about("ranks", judge_boot(identity, boot))
            if boot is not None:
                instance = attempt(lambda: read_instance(uri))
                installed = collect.read_installed(os.environ)
                found = judge_intake(instance, installed, settings.intake)
                yield from _about("intake", found)
            yield from _beside(lead, identity, question)


def _without_lead(question: Question) -> Iterator[Finding]:
    settings = question.settings.settings
    providers = collect.ask_providers(settings, None, question.provider)
    yield from _supply(providers, (), Books())
    rest = "rank slots, endpoint, certificate, daemon, records and orphans"
    advice = "mend the lead first, then ask again"
    yield from _about("lead", [note(f"not looked at without it: {rest}", advice)])


def _beside(
    lead: Lead, identity: LeadIdentity, question: Question
) -> Iterator[Finding]:
    settings = question.settings.settings
    found = attempt(lambda: find_slots(identity, settings.lead.slots))
    slots = () if isinstance(found, Trouble) else found
    yield from _about("slots", judge_slots(found))
    way = collect.read_endpoint(identity, settings)
    yield from _about("certificate", judge_certificate(way))
    yield from _about("endpoint", judge_endpoint(way, settings))
    seen = attempt(lambda: as_followers_see_it(identity, settings.lead))
    lent = identity if isinstance(seen, Trouble) else seen
    providers = collect.ask_providers(settings, lent, question.provider)
    state = collect.read_state(lead, identity, slots, providers)
    books = Books() if isinstance(state.books, Trouble) else state.books
    yield from _supply(providers, slots, books)
    yield from _probes(providers, lent, question)
    yield from _about("daemon", judge_daemon(state, question.settings.path))
    yield from _about("records", judge_records(state.books))
    yield from _about("slots", judge_ranks(state))
    yield from _about("orphans", judge_orphans(state))


def _supply(
    providers: Sequence[ProviderFacts], slots: Sequence[RankSlot], books: Books
) -> Iterator[Finding]:
    for facts in providers:
        health = books.health.get(facts.name, Health())
        yield from _about(f"provider {facts.name}", judge_provider(facts, health))
    yield from _about("offers", judge_market(providers, slots))


def _probes(
    providers: Sequence[ProviderFacts], lead: LeadIdentity, question: Question
) -> Iterator[Finding]:
    if question.probe is None:
        return
    for facts in providers:
        if facts.enabled and not facts.trouble:
            settings = question.settings.settings
            found = collect.probe(facts, settings, lead, question.probe)
            yield from _about(f"provider {facts.name}", judge_probe(found))


def _where(question: Question) -> tuple[str, str]:
    """Return the URI to look at, and who named it."""
    for uri, source in (
        (question.uri, "--uri"),
        (question.settings.settings.lead.uri, "lead.uri"),
        (os.environ.get("FLUX_URI", ""), "FLUX_URI"),
    ):
        if uri:
            return uri, source
    return "", ""


@contextmanager
def _connected(uri: str, settings: Settings) -> Iterator[Lead | Trouble]:
    lead = attempt(lambda: connect(uri, settings.intake.attribute))
    try:
        yield lead
    finally:
        if not isinstance(lead, Trouble):
            lead.close()


def _about(part: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    for finding in findings:
        yield msgspec.structs.replace(finding, about=part)
