# SPDX-License-Identifier: MIT
"""This machine as a lead's own node: its name, its cores, its GPUs, a free port."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Collection
from pathlib import Path

from burst.model.host import dns_label
from burst.model.shape import Shape

_ROOT = Path("/")


def short_name(hostname: str = "") -> str:
    """Return the first label of the host's name as a DNS label (RFC 1035)."""
    first = (hostname or socket.gethostname()).split(".", maxsplit=1)[0]
    return dns_label(first, "lead")


def own_shape(root: Path = _ROOT, cpus: Collection[int] | None = None) -> Shape:
    """Return the cores and GPUs that this process may use, counted as Flux does.

    `root` is where /sys and /proc are, `cpus` by default the process's affinity.
    """
    allowed = os.sched_getaffinity(0) if cpus is None else cpus
    return Shape(_count_cores(root, allowed), _count_gpus(root))


def _count_cores(root: Path, cpus: Collection[int]) -> int:
    """Count cores, not their hardware threads: R's cores are hwloc's."""
    found = set()
    for cpu in cpus:
        topology = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        try:
            # All threads of one core have the same list here.
            found.add((topology / "thread_siblings_list").read_text().strip())
        except OSError:
            # Some virtual machines and containers do not have it.
            return len(cpus)
    return len(found)


def _count_gpus(root: Path) -> int:
    """Count the GPUs of NVIDIA's and AMD's drivers; hwloc's backends see the same."""
    nvidia = len(list(root.glob("proc/driver/nvidia/gpus/*")))
    # CPUs are nodes there too, with the id 0.
    nodes = root.glob("sys/class/kfd/kfd/topology/nodes/*/gpu_id")
    return nvidia + sum(node.read_text().strip() not in {"", "0"} for node in nodes)


# Below the ports that Linux gives to connections and to sockets that ask for any
# (32768 and above, ip(7)), and below Kubernetes' NodePorts: one of those may be taken
# in the second between the choice of a port and the start of the lead.
_FIRST, _LAST = 20_000, 29_999


def free_port() -> int:
    """Return a port that is free on all addresses of this host now."""
    while True:
        port = _FIRST + secrets.randbelow(_LAST - _FIRST + 1)
        with socket.socket() as probe:
            try:
                probe.bind(("", port))
            except OSError:
                continue
            return port
