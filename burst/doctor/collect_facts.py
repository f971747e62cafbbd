# SPDX-License-Identifier: MIT
"""Reads the facts for the checks. No function raises, and none changes anything."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from burst.config import Settings
from burst.core.orphans import find_orphans
from burst.core.plan.slots import RankSlot
from burst.core.records import Records
from burst.core.sync import with_holds
from burst.core.world import ProviderView, World, after_observation
from burst.doctor.calls import BackgroundCall, try_call
from burst.doctor.facts import (
    EndpointFacts,
    FluxFacts,
    ProviderFacts,
    ReadFailure,
    RuntimeFacts,
)
from burst.doctor.handshake import try_handshake
from burst.errors import NoDaemon
from burst.flux.bindings import find_program, import_core
from burst.flux.handle import library_version
from burst.flux_setup.running_instance import RunningInstance
from burst.kits import certificate
from burst.kits.program import flux_version, run
from burst.kits.rotation import running_certificate
from burst.lead import PING_S, Accounting, Lead
from burst.lead_setup.site_files import AdoptionRecord, read_record
from burst.lead_setup.system_units import USUAL_URI
from burst.model.banks import Associations
from burst.model.finding import Finding, note
from burst.model.lead import LeadIdentity, LeadView
from burst.provider import Provider
from burst.provider_type import provider_type
from burst.runtime import provider_registry
from burst.runtime.bank_reader import ACCOUNTING_S
from burst.runtime.call_line import read_offers, read_statuses
from burst.runtime.connect import with_settings
from burst.runtime.engine_config import (
    LoadProviders,
    read_directories,
    read_place,
)
from burst.runtime.lead_reader import read_once
from burst.runtime.ledger_archive import LedgerArchive, archive_path
from burst.runtime.record_store import RecordStore

# A listener on this host answers in a millisecond, one in another cloud in a tenth of a
# second; behind a firewall that drops packets it never does. A lead on a busy machine
# may take seconds, and must not be taken for another program.
_REACH_S = 30.0
# Looking a name up may take longer than connecting to it.
_REACH_DEADLINE_S = 120.0
# For all providers together, each on a thread of its own: a cloud answers in
# seconds, but this host may be busy.
PROVIDERS_DEADLINE_S = 180.0
_USUAL = f"FLUX_URI={USUAL_URI}"
# Providers are made for an owner. This owner has no bursts.
_NOBODY = "OWNER"


def read_flux() -> FluxFacts:
    """Ask the `flux` on PATH, and import its bindings."""
    program = find_program()
    bindings = try_call(lambda: str(Path(str(import_core().__file__)).parent))
    found = not isinstance(bindings, ReadFailure)
    return FluxFacts(
        program=program,
        version=try_call(lambda: flux_version(program)) if program else "",
        bindings=bindings,
        library=library_version() if found else "",
    )


def read_accounting(lead: Lead) -> Associations | ReadFailure | None:
    """Ask flux-accounting for its associations; None if it does not run."""
    if not isinstance(lead, Accounting):
        return None
    return try_call(lambda: lead.associations(ACCOUNTING_S))


def read_added(instance: RunningInstance | ReadFailure) -> Sequence[str]:
    """Return the slots, hostlists, that the files of an adopted instance were given."""
    if isinstance(instance, ReadFailure) or not instance.place:
        return ()
    record = try_call(lambda: read_record(Path(instance.place)))
    return record.hosts if isinstance(record, AdoptionRecord) else ()


def read_endpoint(identity: LeadIdentity, settings: Settings) -> EndpointFacts:
    """Read the certificate, and connect to the endpoint of followers."""
    path = running_certificate(identity)
    usable = try_call(lambda: certificate.read(Path(path)))
    seen = try_call(lambda: with_settings(identity, settings.lead))
    facts = EndpointFacts(
        endpoint=seen if isinstance(seen, ReadFailure) else seen.endpoint,
        own=identity.endpoint,
        certificate=path,
        keys=usable
        if isinstance(usable, ReadFailure)
        else f"{usable.name}, fingerprint {usable.fingerprint}",
    )
    if isinstance(seen, ReadFailure) or not seen.endpoint:
        return facts
    keypair = None if isinstance(usable, ReadFailure) else usable
    result = BackgroundCall(
        lambda: try_handshake(seen.endpoint, keypair, _REACH_S), _REACH_DEADLINE_S
    ).result()
    found, detail = (result, "") if isinstance(result, ReadFailure) else result
    return msgspec.structs.replace(facts, handshake=found, detail=detail)


def ask_providers(
    settings: Settings,
    lead: LeadIdentity | None,
    only: str = "",
    make: LoadProviders = provider_registry.load_providers,
    deadline_s: float = PROVIDERS_DEADLINE_S,
) -> list[ProviderFacts]:
    """Ask each provider, or only `only`, for its offers, bursts and own findings.

    It is asked for bursts only if the lead that owns them is known. A provider that
    hangs does not keep the others from answering.
    """
    names = [name for name in settings.providers if only in {"", name}]
    trials = [
        BackgroundCall(partial(_ask, name, settings, lead, make), deadline_s)
        for name in names
    ]
    return [
        answer
        if isinstance(answer := trial.result(), ProviderFacts)
        else ProviderFacts(
            name=name, type=settings.providers[name].type, trouble=answer
        )
        for name, trial in zip(names, trials, strict=True)
    ]


def _ask(
    name: str, settings: Settings, lead: LeadIdentity | None, make: LoadProviders
) -> ProviderFacts:
    table = settings.providers[name]
    facts = ProviderFacts(
        name=name,
        type=table.type,
        enabled=table.enabled,
        asked_at=time.time(),
        standing=table.standing,
    )
    if not table.enabled:
        return facts
    alone = msgspec.structs.replace(settings, providers={name: table})
    owner = lead.owner if lead else _NOBODY
    told = try_call(lambda: provider_type(table.type))
    made = try_call(lambda: _as_daemon_takes(name, make(alone, owner)[name]))
    for failure in (made, told):
        if isinstance(failure, ReadFailure):
            return msgspec.structs.replace(facts, trouble=failure)
    assert not isinstance(made, ReadFailure)
    return msgspec.structs.replace(
        facts,
        offers=try_call(lambda: read_offers(made)),
        statuses=try_call(lambda: read_statuses(made)) if lead else (),
        findings=try_call(lambda: _checked(made.examine(lead))),
    )


def _as_daemon_takes(name: str, provider: Provider) -> Provider:
    """Return the provider. Raises ConfigError if no daemon would start with it."""
    read_place(name, provider)
    read_directories(name, provider)
    return provider


def _checked(found: Iterable[Finding]) -> Sequence[Finding]:
    """Return all findings of a plug-in. Raises TypeError if one is no Finding."""
    findings = [*found]
    if not all(isinstance(finding, Finding) for finding in findings):
        raise TypeError(f"expected findings, got {findings!r:.60}")
    return findings


class ProbeRequest(msgspec.Struct, frozen=True):
    """What a probe has to test."""

    tell: Callable[[str], None]
    """Called with a line of progress."""
    user: str = ""
    """Also test whether jobs of this user could run there; empty for no such test."""


def probe(
    facts: ProviderFacts,
    settings: Settings,
    lead: LeadIdentity,
    asked: ProbeRequest,
    make: LoadProviders = provider_registry.load_providers,
) -> Sequence[Finding] | ReadFailure:
    """Have a provider test, from where followers run, whether they reach the lead.

    It runs on this thread, so that it cleans up if a person interrupts it.
    """
    alone = msgspec.structs.replace(
        settings, providers={facts.name: settings.providers[facts.name]}
    )
    made = try_call(lambda: make(alone, lead.owner)[facts.name])
    if isinstance(made, ReadFailure):
        return made
    if not made.has("probe"):
        return [note(f"type {facts.type} cannot test the connection to the lead")]
    return try_call(lambda: _checked(made.probe(lead, asked.tell, asked.user)))


def read_runtime(
    lead: Lead,
    identity: LeadIdentity,
    slots: Sequence[RankSlot],
    providers: Sequence[ProviderFacts],
) -> RuntimeFacts:
    """Read the present state of the lead, and our records.

    `providers` were asked before the records are read, so that each burst that they
    list has its record by now.
    """
    now = time.time()
    records = try_call(lambda: RecordStore(lead.store()).load(now))
    known = records if isinstance(records, Records) else Records()
    view = try_call(lambda: read_once(lead, known))
    if isinstance(records, Records) and isinstance(view, LeadView):
        records = with_holds(records, view, now)
    seen = {
        facts.name: after_observation(
            ProviderView(), facts.statuses, [], facts.asked_at
        )
        for facts in providers
        if not isinstance(facts.statuses, ReadFailure)
    }
    unlisted = [
        f"provider {facts.name} does not list its bursts"
        for facts in providers
        if facts.trouble or facts.name not in seen
    ]
    if isinstance(records, ReadFailure):
        unlisted.append("the records cannot be read")
    world = World(identity=identity, slots=slots, lead=None, providers=seen)
    daemon = try_call(lambda: _holder(lead))
    return RuntimeFacts(
        daemon=daemon,
        unit=read_unit(identity.uri) if daemon is None else "",
        records=records,
        archive=try_call(LedgerArchive(archive_path(identity)).check),
        view=view,
        slots=slots,
        orphans=()
        if isinstance(records, ReadFailure)
        else find_orphans(records, world, now),
        unlisted=unlisted,
    )


def read_unit(uri: str) -> str:
    """Return the state of the unit of the lead's daemon; empty if it has none here."""
    what = "--property=LoadState,ActiveState,Environment"
    found = try_call(lambda: run(["systemctl", "show", "burst.service", what]))
    if isinstance(found, ReadFailure):
        return ""
    shown = dict(line.split("=", 1) for line in found.splitlines() if "=" in line)
    variables = shown.get("Environment", "").split()
    named = [each for each in variables if each.startswith("FLUX_URI=")]
    if shown.get("LoadState") != "loaded" or (named or [_USUAL]) != [f"FLUX_URI={uri}"]:
        return ""
    return shown.get("ActiveState", "")


def _holder(lead: Lead) -> dict[str, Any] | None:
    try:
        return lead.call("ping", {}, PING_S)
    except NoDaemon:
        return None
