# SPDX-License-Identifier: MIT
"""Names and homes of users, who may have none on this host, as in a container."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping
from pathlib import Path

from burst.errors import ConfigError


def user_name(uid: int) -> str:
    """Return the name of a user; the number if nobody on this host has it."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


def own_home(environment: Mapping[str, str]) -> Path:
    """Return this user's home directory. Raises ConfigError if there is none."""
    home = environment.get("HOME") or os.path.expanduser("~")
    if home == "~":
        raise ConfigError("this user has no home directory here", "set HOME")
    return Path(home)


def expand_home(path: str) -> Path:
    """Return a path with its `~` replaced; as it is if there is no such home."""
    # Path.expanduser raises an error then.
    return Path(os.path.expanduser(path))
