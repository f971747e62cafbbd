# SPDX-License-Identifier: MIT
"""Read the command of a job from its jobspec (RFC 25)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from burst.decode import from_plain
from burst.errors import JobspecError


class Command(msgspec.Struct, frozen=True):
    """The command that each task of a job runs."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]


def parse_command(jobspec: Mapping[str, Any]) -> Command:
    """Return the command of the job's tasks. Raises JobspecError."""
    try:
        (task,) = jobspec["tasks"]
        system = jobspec["attributes"]["system"]
        if task["count"] != {"per_slot": 1}:
            raise JobspecError(
                "it asks for more than one task per slot", "the embedded lead runs one"
            )
        found = {
            "argv": task["command"],
            "cwd": system.get("cwd", ""),
            "environment": system.get("environment", {}),
        }
        command = from_plain(found, Command)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JobspecError(f"its tasks cannot be read: {error!r}") from error
    if not command.argv:
        raise JobspecError("its command is empty")
    return command
