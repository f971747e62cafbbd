# SPDX-License-Identifier: MIT
"""Programs that a test runs to their end."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def run_captured(
    command: Sequence[str | Path], *, check: bool = False, **how: Any
) -> subprocess.CompletedProcess[str]:
    """Run a command; return its status and what it writes, as text.

    Raises CalledProcessError with `check`; `how` is for `subprocess.run`.
    """
    return subprocess.run(command, check=check, capture_output=True, text=True, **how)
