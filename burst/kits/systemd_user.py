# SPDX-License-Identifier: MIT
"""The systemd of a user, which followers need if the lead's Flux uses it.

With `[systemd] enable`, rank 0 considers a rank online only once that rank's module
sdmon reports that no unit of a job is left on its host (resource/monitor.c of
flux-core). With `[exec] service = "sdexec"`, jobs are started as units. Both use the
bus of the instance's owner to reach systemd. Followers always have the lead's
`[systemd]`, as they get its whole configuration when they join (flux-core 0.82 or
later).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

ENABLE_LINGER = (
    "loginctl enable-linger USER for the owner of the instance starts it, as the unit"
    " flux.service does; or set [systemd] enable = false and no [exec] service in the"
    " lead's configuration"
)
SHELL_VARIABLES = (
    "set -- XDG_RUNTIME_DIR=/run/user/$(id -u)"
    ' DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/$(id -u)/bus" "$@"\n'
)
"""A line for sh that puts the variables of `bus_variables` before the arguments."""


def runtime_directory() -> Path:
    """Return the runtime directory of this user's systemd (pam_systemd(8))."""
    return Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}")


def bus_variables(runtime: Path) -> Mapping[str, str]:
    """Return the variables by which a broker finds the bus, as in flux.service."""
    return {
        "XDG_RUNTIME_DIR": str(runtime),
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus",
    }


def has_bus(runtime: Path) -> bool:
    """Tell whether the socket of the bus exists."""
    return (runtime / "bus").is_socket()
