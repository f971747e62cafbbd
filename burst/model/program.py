# SPDX-License-Identifier: MIT
"""What an isolated burst runs: a job's own jobspec, fit for another instance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from burst.decode import from_plain
from burst.errors import MALFORMED
from burst.model.request import unreadable

# Of `attributes.system`. Queue, constraints and dependencies are this instance's
# business, and our own attributes are done with.
_KEPT = ("duration", "shell", "files", "job")
# The job's directory is here, not there.
_DIRECTORY = "/tmp"  # noqa: S108
# Variables that say where things are on this host, in this instance or this session.
_HERE = frozenset(
    (
        *("PATH", "HOME", "PWD", "OLDPWD", "SHELL", "SHLVL", "TERM", "TMPDIR", "_"),
        *("HOSTNAME", "USER", "LOGNAME"),
    )
)
_OURS = ("FLUX_", "KUBERNETES_", "LD_", "PYTHON", "SSH_", "XDG_", "DBUS_", "SLURM_")


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """What the lead of an isolated burst is to run, once.

    `jobspec` (RFC 14, JSON) is that of kind job, empty for the others. Its environment
    and its attached files are its user's own affair: give it to nobody else, and put
    it nowhere that others can read. No repr shows it.
    """

    kind: Literal["job", "interactive", "service"]
    jobspec: str = ""

    def __repr__(self) -> str:
        return f"Program(kind={self.kind!r}, jobspec=<{len(self.jobspec)} characters>)"


def far_jobspec(jobspec: Mapping[str, Any]) -> str:
    """Return a job's jobspec as it is submitted to another instance.

    Resources, tasks, time limit, attached files and shell options stay; output goes
    where it can be fetched; of the environment what does not say where things are on
    this host. Raises JobspecError where that cannot be made of it.
    """
    try:
        old = from_plain(jobspec["attributes"]["system"], dict[str, Any])
        system = {key: old[key] for key in _KEPT if key in old}
        shell = from_plain(old.get("shell") or {}, dict[str, Any])
        options = from_plain(shell.get("options") or {}, dict[str, Any])
        # A file would be in a pod, and gone with it.
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
    """Return the jobspec of a command that runs once on each of so many nodes.

    `duration` is in seconds, 0 for no limit.
    """
    return _jobspec(command, nodes, duration, {})


def script_jobspec(script: str, nodes: int, duration: float) -> str:
    """Return the jobspec of a script in an instance of so many nodes.

    It is that of `flux batch`. `duration` is in seconds, 0 for no limit.
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
