# SPDX-License-Identifier: MIT
"""What an isolated burst runs: a job's jobspec, changed for another instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from burst.decode import from_plain
from burst.errors import MALFORMED
from burst.model.request import unreadable

# The keys of `attributes.system` that are kept. Queue, constraints and dependencies
# only concern this instance, and attributes of bursting are not needed any more.
_KEPT = ("duration", "shell", "files", "job")
# The job's working directory exists here and not there.
_DIRECTORY = "/tmp"  # noqa: S108
# Variables that only make sense on this host, in this instance or in this session.
_HERE = frozenset(
    (
        *("PATH", "HOME", "PWD", "OLDPWD", "SHELL", "SHLVL", "TERM", "TMPDIR", "_"),
        *("HOSTNAME", "USER", "LOGNAME"),
    )
)
_OURS = ("FLUX_", "KUBERNETES_", "LD_", "PYTHON", "SSH_", "XDG_", "DBUS_", "SLURM_")


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What the lead of an isolated burst runs, once.

    `jobspec` (RFC 14, JSON) is set for kind job, and empty for the other kinds. Its
    environment and its attached files are private to its user: give it to nobody else,
    and do not write it where others can read it. The repr does not show it.
    """

    kind: Literal["job", "interactive", "service"]
    jobspec: str = ""

    def __repr__(self) -> str:
        return f"Program(kind={self.kind!r}, jobspec=<{len(self.jobspec)} characters>)"


def far_jobspec(jobspec: Mapping[str, Any]) -> str:
    """Return a job's jobspec as it is submitted to another instance.

    Resources, tasks, time limit, attached files and shell options stay; the output goes
    where it can be fetched; environment variables that only make sense on this host are
    left out. Raises JobspecError if the jobspec cannot be read.
    """
    try:
        old = from_plain(jobspec["attributes"]["system"], dict[str, Any])
        system = {key: old[key] for key in _KEPT if key in old}
        shell = from_plain(old.get("shell") or {}, dict[str, Any])
        options = from_plain(shell.get("options") or {}, dict[str, Any])
        # An output file would be written in a pod, and lost with it.
        rest = {key: value for key, value in options.items() if key != "output"}
        system["shell"] = {**shell, "options": rest}
        environment = from_plain(old.get("environment") or {}, dict[str, str])
        system["environment"] = {k: v for k, v in environment.items() if _travels(k)}
        system["cwd"] = _DIRECTORY
        found = {**jobspec, "attributes": {"system": system}}
        return msgspec.json.encode(found).decode()
    except MALFORMED as error:
        raise unreadable("jobspec", error) from error


def command_jobspec(command: tuple[str, ...], nodes: int, duration: float) -> str:
    """Return the jobspec of a command that runs once on each of a number of nodes.

    `duration` is in seconds, 0 for no limit.
    """
    return _jobspec(command, nodes, duration, {})


def script_jobspec(script: str, nodes: int, duration: float) -> str:
    """Return the jobspec of a script in an instance with that number of nodes.

    It is what `flux batch` makes. `duration` is in seconds, 0 for no limit.
    """
    data = {"data": script, "encoding": "utf-8", "mode": 0o100700}
    command = ("flux", "broker", "{{tmpdir}}/script")
    return _jobspec(command, nodes, duration, {"files": {"script": data}})


def _jobspec(
    command: tuple[str, ...], nodes: int, duration: float, more: Mapping[str, Any]
) -> str:
    slot = {
        "type": "slot",
        "count": 1,
        "label": "task",
        "with": [{"type": "core", "count": 1}],
    }
    resources = [{"type": "node", "count": nodes, "exclusive": True, "with": [slot]}]
    task = {"command": command, "slot": "task", "count": {"per_slot": 1}}
    system = {"duration": duration, "environment": {}, "cwd": _DIRECTORY, **more}
    return msgspec.json.encode(
        {
            "version": 1,
            "resources": resources,
            "tasks": [task],
            "attributes": {"system": system},
        }
    ).decode()


def _travels(name: str) -> bool:
    return name not in _HERE and not name.startswith(_OURS)
