# SPDX-License-Identifier: MIT
"""The systemd of a user, which followers need where the lead's Flux has it.

With `[systemd] enable` rank 0 takes a rank for online only once its module sdmon says
that no unit of a job is left on its host (resource/monitor.c of flux-core), and with
`[exec] service = "sdexec"` jobs are started as units. Both reach systemd by the bus of
the instance's owner. Followers have the lead's `[systemd]`, as they take its whole
configuration when they join (flux-core 0.82 or later): none can go without.
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
"""For sh: puts the variables of `bus_variables` before the arguments."""


def runtime_directory() -> Path:
    """Return where the systemd of this user has its files (pam_systemd(8))."""
    return Path(os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{os.geteuid()}")


def bus_variables(runtime: Path) -> Mapping[str, str]:
    """Return what a broker needs to find the bus, as the unit flux.service sets it."""
    return {
        "XDG_RUNTIME_DIR": str(runtime),
        "DBUS_SESSION_BUS_ADDRESS": f"unix:path={runtime}/bus",
    }


def has_bus(runtime: Path) -> bool:
    """Tell whether the bus is there."""
    return (runtime / "bus").is_socket()
