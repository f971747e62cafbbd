# SPDX-License-Identifier: MIT
"""Installs what Flux loads for an intake mode beside a lead's files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

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
from burst.lead_setup.daemon_service import (
    rc1_daemon_script,
    rc1_queue_script,
    systemd_unit,
)
from burst.lead_setup.lead_files import LeadExtras


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
