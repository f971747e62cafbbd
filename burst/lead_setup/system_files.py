# SPDX-License-Identifier: MIT
"""Makes the tables of broker.toml, Flux's files and the units of a system instance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from burst.flux_setup.setup_files import IntakeChoice
from burst.lead_setup.daemon_service import rc1_queue_script
from burst.lead_setup.flux_install import FluxInstall, read_tables
from burst.lead_setup.intake_files import install_intake
from burst.lead_setup.lead_files import LeadExtras
from burst.lead_setup.security_files import SecurityPlan, plan_security
from burst.lead_setup.system_units import SystemPlaces, broker_unit, daemon_unit
from burst.provider_type import provider_type

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
