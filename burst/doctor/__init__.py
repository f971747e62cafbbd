# SPDX-License-Identifier: MIT
"""`burst doctor`: checks everything that bursts depend on.

Modules `collect_…` gather the facts, each by itself; modules `check_…` are pure. A
check that fails is a finding, too, and the other checks continue.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from burst.config import LeadSettings, Settings
from burst.core.jobs.confinement import keeps_users_apart
from burst.core.plan.slots import RankSlot, find_slots
from burst.core.provider_health import Health
from burst.core.records import Records
from burst.doctor import collect_facts
from burst.doctor.calls import try_call
from burst.doctor.check_accounting import check_accounting
from burst.doctor.check_config import check_job_scripts, check_resources
from burst.doctor.check_intake import check_intake, check_own_hosts
from burst.doctor.check_multi_user import check_multi_user
from burst.doctor.check_network import (
    check_adopted,
    check_certificate,
    check_endpoint,
    check_slots,
)
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
from burst.doctor.check_queues import (
    check_offer_limits,
    check_queue_states,
    check_queues,
)
from burst.doctor.check_runtime import (
    check_daemon,
    check_orphans,
    check_records,
    check_unleased_slots,
)
from burst.doctor.check_scheduler import (
    check_resource_reload,
    check_scheduled_ranks,
    check_scheduler,
    check_systemd,
)
from burst.doctor.check_setup import (
    check_bootstrap,
    check_flux_program,
    check_lead,
    check_settings,
    check_user,
)
from burst.doctor.collect_installed import (
    frobnicators_here,
    read_installed,
    read_own_hosts,
)
from burst.doctor.collect_multi_user import is_multi_user, read_multi_user
from burst.doctor.facts import (
    LeadFacts,
    ProviderFacts,
    ReadFailure,
    SettingsFacts,
)
from burst.errors import ConfigError
from burst.extensions import installed, load
from burst.flux.identity import read_boot_info
from burst.flux_setup.running_instance import RunningInstance, read_instance
from burst.kits.user_names import user_name
from burst.lead import Lead
from burst.model.finding import Finding, note, wrong
from burst.model.fsd import format_fsd
from burst.model.lead import LeadIdentity
from burst.runtime.connect import connect, is_flux, with_settings

__all__ = ["DoctorRequest", "ReadFailure", "SettingsFacts", "diagnose"]


class DoctorRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What to check."""

    settings: SettingsFacts
    uri: str = ""
    """The URI on the command line, or empty."""
    provider: str = ""
    """Check this provider only; empty for all."""
    probe: Callable[[str], None] | None = None
    """If set, providers start a pod that tests whether it reaches the lead; called with
    each line of progress during the test."""
    user: str = ""
    """If set, `probe` also tells whether jobs of this user could run there."""
    show: Callable[[str], None] = lambda _: None
    """Called with what is waited for, if that may take minutes."""


def diagnose(
    request: DoctorRequest, tell: Callable[[Finding], None] = lambda _: None
) -> list[Finding]:
    """Return all findings; each comes after those about what it depends on.

    `tell` is called with each finding as it is made. Raises ConfigError if there is no
    provider of the requested name.
    """
    known, only = request.settings.settings.providers, request.provider
    if only and only not in known and not request.settings.trouble:
        raise ConfigError(
            f"there is no provider {only!r} in the settings",
            f"there are {', '.join(known) or 'none'}",
        )
    found = []
    for finding in _check_all(request):
        tell(finding)
        found.append(finding)
    return found


def _check_all(request: DoctorRequest) -> Iterator[Finding]:
    settings = request.settings.settings
    uri, source = _find_uri(request)
    boot = try_call(lambda: read_boot_info(uri)) if is_flux(uri) else None
    if found := check_user(boot, user_name):
        yield from _label("user", found)
        return
    yield from _label("settings", check_settings(request.settings))
    if request.settings.trouble:
        # With defaults in place of the file, all else would be wrong, too.
        rest = "flux, the lead, providers and what depends on these"
        advice = "fix the settings first, then run burst doctor again"
        found = [note(f"not checked without the settings: {rest}", advice)]
        yield from _label("settings", found)
        return
    for name in sorted(installed("burst.doctor")):
        yield from _check_of_package(name, settings)
    flux = collect_facts.read_flux()
    yield from _label("flux", check_flux_program(flux, is_flux(uri)))
    with _connected(uri) as lead:
        identity = lead if isinstance(lead, ReadFailure) else try_call(lead.identity)
        facts = LeadFacts(
            uri=uri,
            source=source,
            identity=identity,
            boot=boot,
            owner=_describe_owner(settings.lead),
        )
        yield from _label("lead", check_lead(facts, flux))
        if isinstance(lead, ReadFailure) or isinstance(identity, ReadFailure):
            yield from _check_without_lead(request)
        else:
            yield from _label("ranks", check_bootstrap(identity, boot))
            adopted: Sequence[Finding] = ()
            if boot is not None:
                instance = try_call(lambda: read_instance(uri))
                added = collect_facts.read_added(instance)
                adopted = check_adopted(added, identity.hosts)
                yield from _label("ranks", adopted)
                yield from _check_instance(
                    instance, lead, facts, request, bool(adopted)
                )
            yield from _check_with_lead(lead, identity, request, bool(adopted))


def _check_instance(
    instance: RunningInstance | ReadFailure,
    lead: Lead,
    facts: LeadFacts,
    request: DoctorRequest,
    awaits_restart: bool,
) -> Iterator[Finding]:
    """Check what the running Flux instance of the lead has loaded and is set to do."""
    uri, boot, settings = facts.uri, facts.boot, request.settings.settings
    identity = facts.identity
    assert boot is not None
    assert not isinstance(identity, ReadFailure)
    beside = _directories_of(identity, request)
    listed = frobnicators_here(boot, instance, socket.gethostname(), os.environ)
    installed = read_installed(os.environ, beside, listed)
    found = check_intake(instance, installed, settings, awaits_restart=awaits_restart)
    yield from _label("intake", found)
    if isinstance(instance, RunningInstance):
        yield from _label(
            "intake", check_own_hosts(read_own_hosts(uri, instance, identity))
        )
    yield from _check_config(instance, identity, settings)
    yield from _label("scheduler", check_scheduler(instance, settings.intake))
    answer = collect_facts.read_accounting(lead)
    yield from _label("accounting", check_accounting(answer, settings.intake))
    yield from _check_users(uri, instance, lead, request.settings.path)


def _check_config(
    instance: RunningInstance | ReadFailure, lead: LeadIdentity, settings: Settings
) -> Iterator[Finding]:
    """Check what the instance's configuration says about jobs and nodes."""
    if isinstance(instance, RunningInstance):
        ranks = frozenset(range(len(lead.hosts))) - instance.excluded
        config, intake = instance.config, settings.intake
        found = check_queues(config, lead.properties, ranks, intake)
        found += check_queue_states(instance.queue_states, intake)
        yield from _label("queues", found)
        yield from _label("resources", check_resources(config, settings))
        yield from _label("resources", check_resource_reload(instance))
        yield from _label("scripts", check_job_scripts(config))


def _check_users(
    uri: str, instance: RunningInstance | ReadFailure, lead: Lead, settings: str
) -> Iterator[Finding]:
    """Check what other users' jobs need, if they may submit."""
    if isinstance(instance, RunningInstance) and is_multi_user(instance.config):
        facts = read_multi_user(uri, instance.config, lead, settings)
        yield from _label("users", check_multi_user(facts))


def _directories_of(lead: LeadIdentity, request: DoctorRequest) -> list[Path]:
    """Return the directories of files that were installed for this lead alone."""
    files = (request.settings.path, lead.certificate)
    return list(dict.fromkeys(Path(f).absolute().parent / "flux" for f in files if f))


def _describe_owner(lead: LeadSettings) -> str:
    """Return in words the owner tag that the settings give; empty if they give none."""
    if lead.has_owner_of_service:
        return f"of the UID of Service {lead.service}"
    return lead.owner


def _check_without_lead(request: DoctorRequest) -> Iterator[Finding]:
    settings = request.settings.settings
    providers = _ask_providers(request, None)
    yield from _check_providers(settings, providers, (), Records(), {})
    rest = "rank slots, endpoint, certificate, daemon, records and orphans"
    advice = "fix the lead first, then run burst doctor again"
    yield from _label("lead", [note(f"not checked without the lead: {rest}", advice)])


def _check_with_lead(
    lead: Lead, identity: LeadIdentity, request: DoctorRequest, awaits_restart: bool
) -> Iterator[Finding]:
    settings = request.settings.settings
    found = try_call(lambda: find_slots(identity, settings.lead.slots))
    slots = () if isinstance(found, ReadFailure) else found
    checked = check_slots(found, awaits_restart=awaits_restart)
    yield from _label("slots", checked)
    facts = collect_facts.read_endpoint(identity, settings)
    yield from _label("systemd", check_systemd(identity))
    yield from _label("certificate", check_certificate(facts))
    yield from _label("endpoint", check_endpoint(facts, settings))
    seen = try_call(lambda: with_settings(identity, settings.lead))
    lent = identity if isinstance(seen, ReadFailure) else seen
    # Under another owner tag, a provider would list none of the lead's bursts.
    known = None if isinstance(seen, ReadFailure) and settings.lead.owner else lent
    providers = _ask_providers(request, known)
    state = collect_facts.read_runtime(lead, identity, slots, providers)
    records = Records() if isinstance(state.records, ReadFailure) else state.records
    serving = state.daemon if isinstance(state.daemon, dict) else {}
    troubles = serving.get("troubles", {})
    yield from _check_providers(settings, providers, slots, records, troubles)
    if identity.access.allow_guest_user and not keeps_users_apart(identity, settings):
        yield from _label("offers", check_shared_offers(providers))
    yield from _label("offers", check_offer_limits(providers, identity.limits))
    if not identity.ends:
        yield from _label("offers", check_lease_ends(providers, settings))
    yield from _label("offers", check_prices(providers, settings))
    yield from _label("offers", check_price_keys(providers, settings))
    yield from _probes(providers, lent, request)
    yield from _label("daemon", check_daemon(state, request.settings.path))
    enabled = _enabled(settings) if request.settings.path else None
    yield from _label("records", check_records(state, enabled))
    yield from _label("slots", check_scheduled_ranks(slots, state.view))
    yield from _label("slots", check_unleased_slots(state))
    yield from _label("orphans", check_orphans(state))


def _ask_providers(
    request: DoctorRequest, lead: LeadIdentity | None
) -> list[ProviderFacts]:
    settings, only = request.settings.settings, request.provider
    if names := ", ".join(n for n in sorted(_enabled(settings)) if only in {"", n}):
        limit = format_fsd(collect_facts.PROVIDERS_DEADLINE_S)
        request.show(f"checking; waiting for provider {names}, for at most {limit}")
    return collect_facts.ask_providers(settings, lead, only)


def _check_providers(
    settings: Settings,
    providers: Sequence[ProviderFacts],
    slots: Sequence[RankSlot],
    records: Records,
    troubles: Mapping[str, str],
) -> Iterator[Finding]:
    for facts in providers:
        health = records.health.get(facts.name, Health())
        found = check_provider(facts, health)
        found += check_daemon_reads(facts, troubles.get(facts.name, ""))
        yield from _label(f"provider {facts.name}", found)
    others = _enabled(settings) - {facts.name for facts in providers}
    yield from _label("offers", check_offers(providers, slots, others))


def _enabled(settings: Settings) -> set[str]:
    return {name for name, table in settings.providers.items() if table.enabled}


def _probes(
    providers: Sequence[ProviderFacts], lead: LeadIdentity, request: DoctorRequest
) -> Iterator[Finding]:
    if request.probe is None:
        return
    for facts in providers:
        if facts.enabled and not facts.trouble:
            settings = request.settings.settings
            asked = collect_facts.ProbeRequest(request.probe, request.user)
            found = collect_facts.probe(facts, settings, lead, asked)
            yield from _label(f"provider {facts.name}", check_probe(found))


def _check_of_package(name: str, settings: Settings) -> Sequence[Finding]:
    """Return the findings of another package's check, or that it failed."""
    found = try_call(lambda: list(_label(name, load("burst.doctor", name)(settings))))
    if isinstance(found, ReadFailure):
        return list(_label(name, [wrong(found.what, found.advice)]))
    return found


def _find_uri(request: DoctorRequest) -> tuple[str, str]:
    """Return the URI of the lead, and the option or setting that named it."""
    for uri, source in (
        (request.uri, "--uri"),
        (request.settings.settings.lead.uri, "lead.uri"),
        (os.environ.get("FLUX_URI", ""), "FLUX_URI"),
    ):
        if uri:
            return uri, source
    return "", ""


@contextmanager
def _connected(uri: str) -> Iterator[Lead | ReadFailure]:
    lead = try_call(lambda: connect(uri))
    try:
        yield lead
    finally:
        if not isinstance(lead, ReadFailure):
            lead.close()


def _label(part: str, findings: Iterable[Finding]) -> Iterator[Finding]:
    for finding in findings:
        yield msgspec.structs.replace(finding, about=part)
