# SPDX-License-Identifier: MIT
"""Runs the `flux` command."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from burst.errors import LeadError

_DEADLINE_S = 60.0


def run_flux(
    *words: str,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = _DEADLINE_S,
) -> str:
    """Return what the command printed. Raises LeadError with what it said."""
    try:
        done = subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            env=environment,
            check=True,
        )
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip() or f"status {error.returncode}"
        raise LeadError(f"{' '.join(words[:3])}: {said}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise LeadError(f"{' '.join(words[:3])}: {error}") from error
    return done.stdout
