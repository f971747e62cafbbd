# SPDX-License-Identifier: MIT
"""`burst lead init`: writes a lead's files and burst.toml."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from burst.config import Mode
from burst.core.plan.slots import is_found_by_name
from burst.errors import ConfigError
from burst.flux_setup.install import LIST, plan_files
from burst.flux_setup.setup_files import IntakeChoice
from burst.kits import certificate
from burst.kits.atomic_file import write_atomically
from burst.lead_setup.intake_files import (
    SystemChoice,
    install_system,
    install_with_daemon,
)
from burst.lead_setup.kept_settings import unlike_plan
from burst.lead_setup.lead_files import (
    LeadExtras,
    LeadFiles,
    refuse_existing,
    write_lead,
)
from burst.lead_setup.lead_plan import HostGroup, LeadPlan, resolve_plan
from burst.lead_setup.provider_table import provider_table, tell_to_fill_in
from burst.lead_setup.start_files import StartFiles, write_start_files
from burst.model.ranks import format_hostlist
from burst.model.shape import Shape
from burst.provider_type import NodesRequest, TableRequest, provider_type

# Variables that users' Flux commands need; the others are for brokers.
_OF_USERS = ("FLUX_CLI_PLUGINPATH", "XDG_CONFIG_DIRS")

_SETTINGS = """\
# `burst daemon -c {path}` serves the lead at FLUX_URI.
# `burst config -c {path}` prints all keys and values, defaults too.

[lead]
# Set these if followers reach the lead at another address or port than broker.toml
# says, such as through a NodePort.
# address = "{address}"
# port = {port}
{slots}
{provider}"""
_SLOTS = """\
# Rank slots. A burst leases one of them.
slots = [{slots}]
"""
_INTAKE = """
[intake]
# hold, queue or scheduler. broker.toml is written for this mode.
mode = "{mode}"
"""


class InitializedLead(msgspec.Struct, frozen=True, kw_only=True):
    """What `init_lead` wrote: a lead that can be started."""

    files: LeadFiles
    settings: Path
    kept: tuple[Path, ...]
    """Files that existed before and were left unchanged."""
    unlike: tuple[str, ...] = ()
    """Where a burst.toml that was kept differs from the request."""
    own: str
    """The lead's own hosts."""
    hosts: str
    """All declared hosts, in the order of their ranks."""
    fingerprint: str
    """The fingerprint of the certificate."""
    fill_in: str = ""
    """Says what a person has to fill in in burst.toml; empty for nothing."""
    loaded: tuple[Path, ...] = ()
    """Files below `flux` in the directory, for Flux and for systemd."""
    environment: Mapping[str, str] = {}
    """What a user's shell needs for `flux submit --burst` and `flux jobs -o burst`."""
    scripts: StartFiles | None = None
    """The scripts of a lead that a person starts, and its daemon with it; else None."""


def init_lead(
    directory: Path,
    plan: LeadPlan,
    provider: str,
    *,
    replace: bool = False,
    choice: IntakeChoice | None = None,
) -> InitializedLead:
    """Write the lead's files and burst.toml.

    With `choice`, also write the files that Flux loads for that intake mode into
    `flux` below the directory, and the script that starts the daemon with the lead.

    With `replace`, an existing certificate (followers have copies) and burst.toml (it
    may have been edited) are kept. Raises ConfigError, also for a burst.toml that
    cannot be read, and CertificateError as `burst.lead_setup.lead_files.write_lead`
    does.
    """
    directory = directory.absolute()
    groups = resolve_plan(plan)
    # Before anything is written: it refuses an unknown type of provider.
    place = ""
    if isinstance(choice, SystemChoice):
        place = str(choice.places.followers)
    text = settings_text(directory / "burst.toml", plan, groups, provider, place)
    settings, certificate_path = directory / "burst.toml", directory / "burst.cert"
    kept = tuple(path for path in (certificate_path, settings) if path.exists())
    _refuse(plan, provider, None if replace else settings)
    if not replace:
        refuse_existing(directory)
    unlike: tuple[str, ...] = ()
    if settings in kept:
        mode = choice.intake.mode if choice else "hold"
        unlike = unlike_plan(settings, text, groups, provider, mode)
    extra = _install(directory, choice)
    files = write_lead(directory, plan, extra=extra)
    if settings not in kept:
        if choice:
            text += intake_text(choice.intake.mode)
        write_atomically(settings, text)
    environment = {k: extra.environment[k] for k in _OF_USERS if k in extra.environment}
    scripts = None
    if choice and not isinstance(choice, SystemChoice):
        scripts = write_start_files(
            directory, groups[0].names, files.commands, files.uri, environment
        )
    return InitializedLead(
        files=files,
        settings=settings,
        kept=kept,
        unlike=unlike,
        own=plan.hosts,
        hosts=format_hostlist(name for group in groups for name in group.names),
        fingerprint=certificate.read(files.certificate).fingerprint,
        fill_in="" if settings in kept else tell_to_fill_in(settings, provider, text),
        loaded=_installed(directory / "flux") if choice else (),
        environment=environment,
        scripts=scripts,
    )


def _install(directory: Path, choice: IntakeChoice | None) -> LeadExtras:
    if choice is None:
        return LeadExtras()
    if isinstance(choice, SystemChoice):
        return install_system(directory, choice)
    return install_with_daemon(directory, choice)


def _installed(own: Path) -> tuple[Path, ...]:
    """Return the paths of all installed files, and of the file that lists them."""
    return (*(step.path for step in plan_files(own, {})), own / LIST)


def _refuse(plan: LeadPlan, provider: str, there: Path | None) -> None:
    """Raise ConfigError for a plan that cannot work, or if `there` exists."""
    if plan.gateways and provider_type(provider).own_host:
        raise ConfigError(
            f"followers of type {provider} have no addresses of their own, so none can"
            " be a gateway",
            "leave --gateways out, or use --provider none",
        )
    if there and there.exists():
        raise ConfigError(
            f"{there}: exists already",
            "name another directory; with --force it is kept, and the other files are"
            " overwritten",
        )


def intake_text(mode: Mode) -> str:
    """Return the table of burst.toml for an intake mode."""
    return _INTAKE.format(mode=mode)


def settings_text(
    path: Path,
    plan: LeadPlan,
    groups: Sequence[HostGroup],
    provider: str,
    place: str = "",
) -> str:
    """Return burst.toml for a lead with these own hosts and slots.

    `path` is where it will be, `provider` the type of its provider, and `place` the
    directory that the daemon's unit makes for followers on its host. Raises
    ConfigError.
    """
    own, *slots = groups
    names = [slot.names for slot in slots]
    by_name = is_found_by_name((*own.names, *sum(names, ())), names)
    quoted = ", ".join(f'"{format_hostlist(hosts)}"' for hosts in names)
    return _SETTINGS.format(
        path=path,
        address=plan.address,
        port=plan.port,
        # Only if the names do not show the slots: the lead may get other slots later.
        slots="" if by_name else _SLOTS.format(slots=quoted),
        provider=provider_table(provider, _table_request(slots, place)),
    )


def _table_request(slots: Sequence[HostGroup], place: str) -> TableRequest:
    sizes: dict[Shape, list[int]] = {}
    for slot in slots:
        sizes.setdefault(slot.shape, []).append(len(slot.names))
    each = tuple(
        NodesRequest(
            name=_offer_name(shape) if len(sizes) > 1 else "nodes",
            shape=shape,
            nodes=max(found),
        )
        for shape, found in sizes.items()
    )
    total = sum(len(slot.names) for slot in slots)
    return TableRequest(each=each, total=total, place=place)


def _offer_name(shape: Shape) -> str:
    gpus = f"-gpus-{shape.gpus}" if shape.gpus else ""
    return f"cores-{shape.cores}{gpus}"
