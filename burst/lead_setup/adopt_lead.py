# SPDX-License-Identifier: MIT
"""Adds to a site's system instance what bursts need, and changes nothing else."""

from __future__ import annotations

import pwd
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from burst.config import IntakeSettings, Mode, Settings, load
from burst.errors import ConfigError
from burst.flux_setup.site_tables import check_names, site_tables
from burst.kits.atomic_file import advice_on, write_atomically
from burst.kits.path_rights import make_open_directory
from burst.lead_setup.add_slots import (
    AddedSlot,
    SlotPlan,
    declared_hosts,
    plan_slots,
    without_resources,
)
from burst.lead_setup.init_lead import intake_text, settings_text
from burst.lead_setup.intake_files import DAEMON_UNIT
from burst.lead_setup.kept_settings import lacking_slots, unlike_choice
from burst.lead_setup.lead_config import declared_resources, lent_hosts, read_lead
from burst.lead_setup.lead_plan import (
    DEFAULT_PORT,
    HostGroup,
    LeadPlan,
    PlannedSlot,
    resolve_plan,
    resolve_slots,
)
from burst.lead_setup.provider_table import tell_to_fill_in
from burst.lead_setup.site_files import (
    AdoptionRecord,
    digest,
    read_record,
    replace_files,
)
from burst.lead_setup.system_lead import install_unit
from burst.lead_setup.system_units import USUAL_URI, SystemPlaces, daemon_unit
from burst.model.confinement import LENT
from burst.model.ranks import format_hostlist, parse_hostlist
from burst.provider_type import provider_type

_STAYS = (
    "{} is not what was written for burst, so it stays; to have it written again, move"
    " it away and repeat this command"
)


class AdoptRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be added to an instance."""

    config: Path
    """Its configuration: a directory such as /etc/flux/system/conf.d, or a file."""
    settings: Path
    """burst.toml, to write if there is none. The daemon's unit is put beside it."""
    slots: tuple[PlannedSlot, ...]
    provider: str
    """The type of the provider."""
    mode: Mode
    places: SystemPlaces


class AdoptedLead(msgspec.Struct, frozen=True, kw_only=True):
    """What was added."""

    added: Sequence[AddedSlot]
    copies: Sequence[Path]
    """Copies of the changed files, as they were before."""
    written: tuple[Path, ...]
    kept: tuple[Path, ...]
    unlike: tuple[str, ...] = ()
    """Where the files that were kept differ from the request."""
    fill_in: str = ""
    """Says what a person has to fill in in the settings; empty for nothing."""


def adopt_lead(asked: AdoptRequest) -> AdoptedLead:
    """Declare the slots, and write the daemon's settings and unit.

    Slots that are declared already stay as they are. Raises ConfigError, before
    anything is written, if the instance could not burst or declares a part of a slot.
    """
    tables = read_lead(asked.config).files.tables
    _check_bootstrap(tables.get("bootstrap", {}), asked)
    there = load(asked.settings) if asked.settings.exists() else None
    intake = there.intake if there else IntakeSettings()
    # Else `burst setup`, the next step, would refuse it after ranks were declared.
    check_names(
        site_tables(tables, {}), msgspec.structs.replace(intake, mode=asked.mode)
    )
    known = declared_hosts(tables)
    groups = resolve_slots((), asked.slots)
    own = _own_hosts(asked.config, known, groups)
    _refuse_own(asked.config, known, own)
    missing = [
        slot
        for slot, group in zip(asked.slots, groups, strict=True)
        if not set(group.names) <= set(known)
    ]
    plan = LeadPlan(
        hosts=format_hostlist(own),
        shape=asked.slots[0].shape,
        slots=asked.slots,
        address=known[0],
        port=int(tables["bootstrap"].get("default_port", DEFAULT_PORT)),
    )
    text = settings_text(
        asked.settings,
        plan,
        resolve_plan(plan),
        asked.provider,
        str(asked.places.followers),
    )
    texts, kept = _daemon_files(asked, text, there)
    unlike = (
        *(unlike_choice(there, asked.provider, asked.mode) if there else ()),
        *(lacking_slots(there, groups) if there else ()),
        *_other_shapes(asked.config, asked.slots, groups),
        *(_STAYS.format(path) for path in kept if path != asked.settings),
    )
    more = plan_slots(asked.config, missing) if missing else SlotPlan()
    hosts = [slot.hosts for slot in missing]
    copies = replace_files(asked.config, more.texts, hosts, texts, asked.places.uri)
    written = _write_daemon_files(texts)
    return AdoptedLead(
        added=more.added,
        copies=copies,
        written=written,
        kept=kept,
        unlike=unlike,
        fill_in="" if there else tell_to_fill_in(asked.settings, asked.provider, text),
    )


def _check_bootstrap(bootstrap: Mapping[str, Any], asked: AdoptRequest) -> None:
    """Raise ConfigError if nothing could join by this [bootstrap]."""
    if not bootstrap.get("curve_cert"):
        raise ConfigError(
            f"{asked.config}: [bootstrap] has no curve_cert, so nothing could join",
            f"run burst keygen FILE as {asked.places.user}, then name FILE there",
        )
    _check_certificate(Path(str(bootstrap["curve_cert"])), asked.places.user)


def _own_hosts(
    config: Path, known: Sequence[str], groups: Sequence[HostGroup]
) -> list[str]:
    """Return the instance's hosts that are in none of these slots, in their order.

    Raises ConfigError if there are none, or if R lacks hosts of the slots.
    """
    slots = {name for group in groups for name in group.names}
    own = [host for host in known if host not in slots]
    if not own:
        raise ConfigError(
            f"{config}: [bootstrap] hosts names no host of the instance itself",
            "declare its own hosts first, the one of rank 0 at least:"
            ' hosts = [{ host = "NAME" }], with the name that hostname prints',
        )
    if lacking := without_resources(config, slots & set(known)):
        raise ConfigError(
            f"{format_hostlist(lacking)} are in [bootstrap] hosts and not in what"
            " [resource] declares, R or [[resource.config]]",
            "an earlier command was interrupted, or R is of another host: restore the"
            " files from their copies, *.old, and run this command again",
        )
    return own


def _refuse_own(config: Path, known: Sequence[str], own: Sequence[str]) -> None:
    """Raise ConfigError if a host of the instance itself is to be in a slot.

    Of the `known` hosts, all but `own` are to be. `burst lead unadopt` takes out what
    is on record, which must be ours.
    """
    record = read_record(config) or AdoptionRecord()
    ours = {host for each in record.hosts for host in parse_hostlist(each)}
    slots = set(known) - set(own) - ours
    if theirs := sorted(slots - lent_hosts(config, known)):
        raise ConfigError(
            f"{format_hostlist(theirs)}: hosts of the instance itself, which no burst"
            " brings",
            "give the slot names that are in no [bootstrap] hosts, such as"
            " burst-0-[0-3]; ranks that were declared for bursts by hand need the"
            f" property {LENT} in R or [[resource.config]]",
        )


def _daemon_files(
    asked: AdoptRequest, text: str, there: Settings | None
) -> tuple[dict[Path, str], tuple[Path, ...]]:
    """Return the settings and the unit that are to be written, and those that stay.

    Settings stay if there are some (`there`), a unit if somebody has edited it. Raises
    ConfigError.
    """
    types = {asked.provider, *(_types(there) if there else ())}
    here = any(provider_type(kind).own_host for kind in types)
    unit = asked.settings.with_name(DAEMON_UNIT)
    its_text = daemon_unit(asked.places, asked.settings, has_followers=here)
    edited = _is_other(unit, its_text, asked.config)
    texts = {} if there else {asked.settings: text + intake_text(asked.mode)}
    if not edited:
        texts[unit] = its_text
    return texts, (*([unit] if edited else ()), *([asked.settings] if there else ()))


def _is_other(unit: Path, text: str, config: Path) -> bool:
    """Return whether the unit exists, and is neither this nor what adopt wrote.

    Raises ConfigError.
    """
    record = read_record(config)
    known = record.written.get(str(unit)) if record else None
    try:
        return digest(unit.read_bytes()) not in {known, digest(text.encode())}
    except FileNotFoundError:
        return False
    except OSError as error:
        raise ConfigError(
            f"{unit}: cannot be read: {error.strerror}", "run it as root"
        ) from error


def _write_daemon_files(texts: Mapping[Path, str]) -> tuple[Path, ...]:
    """Write files that all users can read; return their paths. Raises ConfigError."""
    for path, text in texts.items():
        try:
            make_open_directory(path.parent)
            write_atomically(path, text, mode=0o644)
        except OSError as error:
            other = "run it as root, or name another file with --settings"
            raise ConfigError(
                f"{path.parent}: cannot be written: {error.strerror}",
                advice_on(error, other),
            ) from error
    return tuple(texts)


def _types(settings: Settings) -> frozenset[str]:
    return frozenset(table.type for table in settings.providers.values())


def _other_shapes(
    config: Path, slots: Sequence[PlannedSlot], groups: Sequence[HostGroup]
) -> Iterator[str]:
    """Yield a line for each slot that is declared with other nodes than requested."""
    known = declared_resources(config)
    for slot, group in zip(slots, groups, strict=True):
        there = {str(known[host]) for host in group.names if host in known}
        if there - {str(slot.shape)}:
            yield (
                f"{slot.hosts} stays as it is declared, each"
                f" {' or '.join(sorted(there))}, not {slot.shape}; to change it,"
                " correct R or [[resource.config]] by hand"
            )


def _check_certificate(path: Path, user: str) -> None:
    """Raise ConfigError if the certificate exists here and is not this user's."""
    try:
        found = path.stat().st_uid
    except OSError:
        # `burst doctor` reports a certificate that is missing or cannot be read.
        return
    if found != pwd.getpwnam(user).pw_uid:
        raise ConfigError(
            f"{path} is owned by uid {found}, and the daemon as {user} could not read"
            " it: the daemon must run as the user who runs the brokers",
            f"name that user with --user; or, if it is {user}: chown {user} {path}",
        )


def next_commands(
    asked: AdoptRequest, apart: Path | None = None
) -> Iterator[tuple[str, ...]]:
    """Yield what root has to run, in this order, until the instance can burst.

    `apart` is the directory for the files of `burst setup` if the instance is not the
    host's own. Then its units are unknown, and flux.service is that of another.
    """
    settings, unit = str(asked.settings), asked.settings.with_name(DAEMON_UNIT)
    uri = asked.places.uri
    at = () if uri == USUAL_URI and not apart else ("--uri", uri)
    # With --system, `setup` asks the host's own instance.
    place = ("--dir", str(apart), *at) if apart else ("--system",)
    yield ("burst", "setup", *place, "--mode", asked.mode, "-c", settings)
    if not apart:
        yield install_unit(unit)
        yield ("systemctl", "daemon-reload")
    yield ("burst", "lead", "check", str(asked.config), *at)
    if not apart:
        yield ("systemctl", "restart", "flux")
        yield ("systemctl", "enable", "--now", "burst")
    # Only the owner can read what followers have.
    as_owner = ("runuser", "-u", asked.places.user, "--")
    yield (*as_owner, "burst", "doctor", "-c", settings, *at)
