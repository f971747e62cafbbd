# SPDX-License-Identifier: MIT
import os
from pathlib import Path

import pytest

from burst.lead_setup.own_host import own_shape, short_name
from burst.model.host import is_host_name
from burst.model.shape import Shape


@pytest.mark.parametrize(
    ("hostname", "name"),
    [
        ("node17.cluster.example", "node17"),
        ("Node_17", "node-17"),
        ("-x-", "x"),
        ("ä.example", "lead"),
        ("n" * 80, "n" * 63),
    ],
)
def test_a_hosts_name_becomes_a_dns_label(hostname: str, name: str) -> None:
    assert short_name(hostname) == name
    assert is_host_name(name)


def put(path: Path, text: str = "") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def threads(root: Path, *siblings: str) -> None:
    for cpu, both in enumerate(siblings):
        where = root / f"sys/devices/system/cpu/cpu{cpu}/topology"
        put(where / "thread_siblings_list", f"{both}\n")


def test_threads_of_one_core_are_one_core(tmp_path: Path) -> None:
    assert own_shape(tmp_path, {0, 1, 2}) == Shape(3), "where topology is not told"
    threads(tmp_path, "0,2", "1,3", "0,2", "1,3")
    assert own_shape(tmp_path, {0, 1, 2, 3}) == Shape(2)
    assert own_shape(tmp_path, {0, 2}) == Shape(1)
    assert 1 <= own_shape().cores <= len(os.sched_getaffinity(0))


def test_gpus_of_both_makers_are_counted(tmp_path: Path) -> None:
    put(tmp_path / "proc/driver/nvidia/gpus/0000:01:00.0")
    put(tmp_path / "proc/driver/nvidia/gpus/0000:02:00.0")
    nodes = tmp_path / "sys/class/kfd/kfd/topology/nodes"
    for node, gpu_id in enumerate(("0\n", "41234\n", "")):
        put(nodes / str(node) / "gpu_id", gpu_id)
    assert own_shape(tmp_path, {0}) == Shape(1, 3)
