# SPDX-License-Identifier: MIT
"""A time limit for the exec plugins of kubeconfigs, which the client runs without one.

Such a plugin is a program (of aws, gcloud, az) that prints a token. If it waits for a
network or a login, it would block its provider for ever.

Source: the Kubernetes documentation, "client-go credential plugins".
"""

from __future__ import annotations

import sys
from typing import Any

LATE = "no credentials within"
"""Part of the error message if a plugin was killed after its time limit."""
NOT_RUN = "cannot be run"
"""Part of the error message if a plugin could not be started, as if it is missing."""

# Runs in place of the plugin, and kills the plugin with its children at the time limit.
_WATCH = f"""
import os, signal, subprocess, sys
seconds, *command = sys.argv[1:]
try:
    plugin = subprocess.Popen(command, start_new_session=True)
    sys.exit(plugin.wait(float(seconds)))
except OSError as error:
    sys.exit(f"{{command[0]}}: {NOT_RUN}: {{error.strerror}}")
except subprocess.TimeoutExpired:
    os.killpg(plugin.pid, signal.SIGKILL)
    sys.exit(f"{LATE} {{seconds}} s")
"""


def limit(user: dict[str, Any], seconds: float) -> None:
    """Limit the time of the exec plugin of a kubeconfig's user, if it has one."""
    plugin = user.get("exec")
    if not isinstance(plugin, dict) or "command" not in plugin:
        return
    command = [plugin["command"], *(plugin.get("args") or [])]
    plugin["command"] = sys.executable
    plugin["args"] = ["-I", "-S", "-c", _WATCH, f"{seconds:g}", *command]
