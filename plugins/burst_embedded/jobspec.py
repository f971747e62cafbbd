# SPDX-License-Identifier: MIT
"""Jobspec V1 (RFC 25): made for a submission, and read for its command."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from burst.decode import from_plain
from burst.errors import JobspecError


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Resources as `flux submit` takes them: -N, -n, -c, -g; 0 where not given."""

    nodes: int = 0
    slots: int = 0
    cores: int = 1
    gpus: int = 0


class Command(msgspec.Struct, frozen=True):
    """What each task of a job runs."""

    argv: tuple[str, ...]
    cwd: str
    environment: Mapping[str, str]


def build_jobspec(
    command: Sequence[str], wanted: Wanted, system: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the jobspec of one task a slot.

    `system` goes to `attributes.system` over its defaults: duration, cwd, environment,
    constraints, burstable, burst. Nodes without slots are whole nodes with one slot
    each, as with `flux submit -N`. Raises JobspecError.
    """
    with_ = [{"type": "core", "count": wanted.cores}]
    if wanted.gpus:
        with_.append({"type": "gpu", "count": wanted.gpus})
    slot: dict[str, Any] = {"type": "slot", "label": "task", "with": with_}
    resource = {**slot, "count": wanted.slots or 1}
    if wanted.nodes:
        each, odd = divmod(wanted.slots or wanted.nodes, wanted.nodes)
        if odd or not each:
            raise JobspecError(
                f"{wanted.slots} slots do not spread evenly over {wanted.nodes} nodes",
                "make one a multiple of the other",
            )
        resource = {"type": "node", "count": wanted.nodes}
        resource["with"] = [{**slot, "count": each}]
        if not wanted.slots:
            resource["exclusive"] = True
    return {
        "version": 1,
        "resources": [resource],
        "tasks": [{"command": list(command), "slot": "task", "count": {"per_slot": 1}}],
        "attributes": {"system": {"duration": 0, **system}},
    }


def parse_command(jobspec: Mapping[str, Any]) -> Command:
    """Return the command of the job's tasks. Raises JobspecError."""
    try:
        (task,) = jobspec["tasks"]
        system = jobspec["attributes"]["system"]
        if task["count"] != {"per_slot": 1}:
            raise JobspecError(
                "it asks for more than one task a slot", "the embedded lead runs one"
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


def parse_setattr(text: str) -> tuple[str, Any]:
    """Return key and value of `KEY[=VALUE]`; the value is JSON where it can be."""
    key, equals, value = text.partition("=")
    if not equals:
        return key, True
    try:
        return key, json.loads(value)
    except ValueError:
        return key, value


def set_attribute(system: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key under `attributes.system`. Raises JobspecError."""
    *tables, last = key.removeprefix("attributes.").removeprefix("system.").split(".")
    for table in tables:
        system = system.setdefault(table, {})
        if not isinstance(system, dict):
            raise JobspecError(f"attribute {key}: {table} has a value already")
    system[last] = value


def parse_requires(text: str) -> dict[str, Any]:
    """Return RFC 31 of `PROPERTY,^PROPERTY...`, all of which must hold.

    Raises JobspecError.
    """
    if not re.fullmatch(r"\^?[\w.-]+(,\^?[\w.-]+)*", text):
        raise JobspecError(
            f"not a constraint: {text!r}",
            "the embedded lead knows properties: burst,^slow",
        )
    return {"properties": text.split(",")}
