# SPDX-License-Identifier: MIT
"""What is told of followers, by their job's log and files."""

from __future__ import annotations

from pathlib import Path

from burst.provider import Phase
from tests.plugins.slurm.fake_cluster import FakeCluster

WRONG_VERSION = (
    "client (0.87.0) version mismatched with server (0.88.0)",
    "it runs Flux 0.87.0 and the lead 0.88.0",
)


def place_of(cluster: FakeCluster) -> Path:
    """Provision a burst whose job has not started; return its directory."""
    cluster.set("stalled")
    spec = cluster.spec()
    cluster.provider().provision(spec)
    return cluster.dir / f"owner-a.slurm/{spec.burst_id}"


def test_why_a_follower_does_not_join_is_in_its_log(cluster: FakeCluster) -> None:
    place = place_of(cluster)
    cluster.set("state", "RUNNING")
    (place / "log").write_text(f"0: <6>all is well\n1: <3>{WRONG_VERSION[0]}\n")
    [job] = cluster.world.jobs.iterdir()
    began = float((job / "submitted").read_text())
    [early] = cluster.provider(clock=lambda: began).observe()
    assert (early.phase, early.why) == (Phase.RUNNING, "")
    [late] = cluster.later(30).observe()
    assert late.phase is Phase.RUNNING
    assert late.why.startswith(f"burst-0-1 {WRONG_VERSION[1]}")
    assert [bool(follower.why) for follower in late.followers] == [0, 1, 0, 0]
