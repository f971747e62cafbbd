# SPDX-License-Identifier: MIT
"""Installs what Flux and systemd load beside the files of a lead.

That is what the intake mode needs, and for a system instance the units, too.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from burst.flux_setup.install import apply_files
from burst.flux_setup.setup_files import (
    LEAD_PIECE,
    IntakeChoice,
    lead_tables,
    make_files,
    single_directory,
)
from burst.kits.user_names import user_name
from burst.lead_setup.flux_install import FluxInstall, read_tables
from burst.lead_setup.lead_files import LeadExtras
from burst.lead_setup.security_files import SecurityPlan, plan_security
from burst.lead_setup.start_files import (
    rc1_daemon_script,
    rc1_queue_script,
    systemd_unit,
)
from burst.lead_setup.system_units import SystemPlaces, broker_unit, daemon_unit
from burst.provider_type import provider_type


def install_intake(
    directory: Path, choice: IntakeChoice, more: Mapping[str, str] | None = None
) -> LeadExtras:
    """Install what Flux loads for an intake mode into `flux` below the directory.

    `directory` is absolute. `more` are further files, by their paths relative to
    `flux`. Returns the additions to broker.toml and environment. Raises ConfigError.
    """
    places = single_directory(directory / "flux")
    made = make_files(places, choice)
    made |= {places.own / path: text for path, text in (more or {}).items()}
    del made[places.config / LEAD_PIECE]  # broker.toml says it
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    apply_files(places.own, made)
    return LeadExtras(lead_tables(places, choice), places.environment)


def install_with_daemon(directory: Path, choice: IntakeChoice) -> LeadExtras:
    """Do as `install_intake`; add scripts that start the daemon and the local queue."""
    programs = {"rc1.d/burst-daemon": rc1_daemon_script(directory)}
    before = None
    if choice.intake.mode == "queue" and choice.local_queue:
        name = "rc1.d/burst-queues"
        programs[name] = rc1_queue_script(directory / "state", choice.local_queue)
        before = directory / "flux" / name
    unit = systemd_unit(directory, user_name(os.geteuid()), before)
    more = {**programs, "burst.service": unit}
    extra = install_intake(directory, choice, more)
    for name in programs:
        (directory / "flux" / name).chmod(0o755)
    environment = {**extra.environment, "FLUX_RC_EXTRA": str(directory / "flux")}
    return msgspec.structs.replace(extra, environment=environment)


BROKER_UNIT, DAEMON_UNIT = "flux.service", "burst.service"
_QUEUES = "start-queues"


class SystemChoice(IntakeChoice, frozen=True, kw_only=True):
    """The intake mode of a system instance, its user and places, and what it needs."""

    places: SystemPlaces
    install: FluxInstall
    security: SecurityPlan
    own: tuple[str, ...]
    """The lead's own hosts."""
    provider: str
    """Type of the provider."""


def find_security(install: FluxInstall, user: str) -> SecurityPlan:
    """Return what flux-security still needs on this host. Raises ConfigError."""
    sign, imp = read_tables(install.sign_config), read_tables(install.imp_config)
    return plan_security(install, user, sign, imp)


def system_tables(imp: Path) -> dict[str, Any]:
    """Return the tables that broker.toml has only for a system instance.

    See flux-config-access(5) and flux-config-exec(5). Followers need the same.
    """
    return {
        "access": {"allow-guest-user": True, "allow-root-owner": True},
        "exec": {"imp": str(imp)},
    }


def install_system(directory: Path, choice: SystemChoice) -> LeadExtras:
    """Install the intake's files, the units and flux-security's below the directory.

    Returns the additions to broker.toml. Raises ConfigError.
    """
    places, more = choice.places, {}
    before = None
    if choice.intake.mode == "queue" and choice.local_queue:
        more[_QUEUES] = rc1_queue_script(places.state, choice.local_queue)
        before = directory / "flux" / _QUEUES
    for target, text in choice.security.wanted.items():
        more[staged_name(target)] = text
    settings = directory / "burst.toml"
    more[DAEMON_UNIT] = daemon_unit(
        places,
        settings,
        before,
        has_followers=provider_type(choice.provider).own_host,
    )
    extra = install_intake(directory, choice, more)
    broker = [choice.install.flux, "broker", f"--config-path={directory}/broker.toml"]
    if not choice.own[1:]:
        # Several hosts share the unit, and use the names that hostname(1) prints.
        broker.append(f"-Shostname={choice.own[0]}")
    unit = broker_unit(places, broker, extra.environment, len(choice.own))
    extra = install_intake(directory, choice, {**more, BROKER_UNIT: unit})
    if before:
        before.chmod(0o755)
    tables = {**extra.tables, **system_tables(choice.install.imp)}
    return msgspec.structs.replace(extra, tables=tables, run=places.run, system=True)


def staged_name(target: Path) -> str:
    """Return the path below `flux` of a file of flux-security until it is installed."""
    return f"security/{target.name}"
