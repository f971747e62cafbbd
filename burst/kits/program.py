# SPDX-License-Identifier: MIT
"""Asks a program `flux` which version it is of, without a broker."""

from __future__ import annotations

import os
import re
import subprocess

from burst.errors import ConfigError

# A hundred times of what it takes.
_DEADLINE_S = 10.0


def flux_version(program: str) -> str:
    """Return the version of the Flux that this program is of, such as `0.88.0`.

    Raises ConfigError if it cannot be run, or does not say.
    """
    # With FLUX_URI it would ask that broker too, which may be what is broken.
    plain = {key: value for key, value in os.environ.items() if key != "FLUX_URI"}
    try:
        answer = subprocess.run(
            [program, "version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_DEADLINE_S,
            check=True,
            env=plain,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise ConfigError(
            f"{program} cannot be asked for its version: {error}",
            f"see that `{program} version` works as this user",
        ) from error
    match = re.search(r"^commands:\s*(\S+)", answer.stdout, re.MULTILINE)
    if match is None:
        raise ConfigError(
            f"{program} does not say its version", "is it the flux of flux-core?"
        )
    return match[1]
