# SPDX-License-Identifier: MIT
"""What `burst doctor` finds of a Slurm cluster, before anything is submitted."""

from __future__ import annotations

from typing import Any

import pytest

from burst.config import Seconds
from burst.model.finding import Level
from tests.plugins.slurm.fake_cluster import FakeCluster


def examined(cluster: FakeCluster, **changes: Any) -> list[tuple[Level, str]]:
    provider = cluster.provider(**changes)
    return [(finding.level, finding.what) for finding in provider.examine(None)]


def test_a_cluster_that_works(cluster: FakeCluster) -> None:
    directory, *others = examined(cluster)
    # Nothing here is shared.
    assert directory[0] is Level.NOTE
    assert others == [
        (Level.OK, f"Slurm answers, and {cluster.bin}/sbatch is of slurm 25.05.3"),
        (Level.OK, "Slurm takes jobs of 1 to 4 nodes"),
    ]
    assert cluster.argv() == []
    assert not cluster.dir.exists()


@pytest.mark.parametrize(
    ("knob", "text", "what"),
    [
        ("down", "", "Unable to contact slurm controller"),
        ("says", "Invalid account", "Slurm takes no job of 1 nodes"),
    ],
)
def test_what_slurm_refuses_is_found(
    cluster: FakeCluster, knob: str, text: str, what: str
) -> None:
    cluster.set(knob, text)
    wrong = [said for level, said in examined(cluster) if level is Level.WRONG]
    assert any(what in said for said in wrong), wrong


@pytest.mark.parametrize("partition", ["", "batch*"])
def test_a_partition_that_is_down_is_noted(
    cluster: FakeCluster, partition: str
) -> None:
    cluster.set("closed")
    told = (Level.NOTE, "partition batch is down, so no job starts there")
    assert told in examined(cluster, partition=partition)


@pytest.mark.parametrize(
    ("partition", "time", "limit"),
    [
        ("few", 1800, ""),
        ("", 129600, "partition (default) ends jobs after 1d, and time is 1.5d"),
        ("long", 10**9, ""),
    ],
)
def test_a_time_limit_that_slurm_never_starts_is_found(
    cluster: FakeCluster, partition: str, time: float, limit: str
) -> None:
    found = examined(cluster, partition=partition, time=Seconds(time))
    wrong = [said for level, said in found if level is Level.WRONG]
    assert bool(wrong) == bool(limit)
    assert all(said.startswith(limit) for said in wrong)


def test_programs_that_are_missing_are_named(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cluster.bin / "scancel").unlink()
    (cluster.bin / "squeue").unlink()
    monkeypatch.setenv("PATH", str(cluster.bin))
    assert examined(cluster)[-1] == (Level.WRONG, "not on PATH: squeue, scancel")
