# SPDX-License-Identifier: MIT
"""Exit statuses as a shell has them."""

from __future__ import annotations

_SIGNALED, _HIGHEST = 128, 255


def shell_status(returncode: int) -> int:
    """Return the exit status for a return code, 0 to 255, which is 0 for 0 only.

    A return code below 0 is the signal that ended the process, as `subprocess` has it:
    -9 for SIGKILL, whose exit status is 137. One that no process can have, as a
    provider may show it, is 255.
    """
    code = _SIGNALED - returncode if returncode < 0 else returncode
    return min(code, _HIGHEST)
