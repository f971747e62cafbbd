# SPDX-License-Identifier: MIT
"""Exit statuses as a shell reports them."""

from __future__ import annotations

_SIGNALED, _HIGHEST = 128, 255
INTERRUPTED = 130
"""The exit status after Ctrl-C: 128 and SIGINT."""


def shell_status(returncode: int) -> int:
    """Return the exit status, 0 to 255, for a return code; it is 0 only for 0.

    A return code below 0 is the signal that ended the process, as in `subprocess`: -9
    for SIGKILL, whose exit status is 137. A code above 255, which no process can have
    but a provider may report, becomes 255.
    """
    code = _SIGNALED - returncode if returncode < 0 else returncode
    return min(code, _HIGHEST)
