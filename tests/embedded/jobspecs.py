# SPDX-License-Identifier: MIT
"""Jobspecs (RFC 25) of all that `flux submit` can ask for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """Resources as `flux submit` takes them: -N, -n, -c, -g; 0 where not given."""

    nodes: int = 0
    slots: int = 0
    cores: int = 1
    gpus: int = 0


def build_jobspec(
    command: Sequence[str], wanted: Wanted, system: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the jobspec of one task a slot, which spread evenly over the nodes.

    `system` goes to `attributes.system` over its defaults: duration, cwd, environment,
    constraints, burstable, burst. Nodes without slots are whole nodes with one slot
    each, as with `flux submit -N`.
    """
    with_ = [{"type": "core", "count": wanted.cores}]
    if wanted.gpus:
        with_.append({"type": "gpu", "count": wanted.gpus})
    slot: dict[str, Any] = {"type": "slot", "label": "task", "with": with_}
    resource = {**slot, "count": wanted.slots or 1}
    if wanted.nodes:
        each, odd = divmod(wanted.slots or wanted.nodes, wanted.nodes)
        assert each
        assert not odd
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
