# SPDX-License-Identifier: MIT
"""What is told of followers, by their job's log and files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from burst.errors import SpecRefused, Transient
from burst.provider import Phase
from tests.plugins.slurm.fake_cluster import FakeCluster
from tests.support.reaping import reap_until_gone

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


def test_one_that_ended_is_told_and_the_others_run(cluster: FakeCluster) -> None:
    place = place_of(cluster)
    cluster.set("state", "RUNNING")
    (place / "log").write_text("0: <6>all is well\n2: <3>the disk is full\n")
    (place / "burst-0-2.ended").write_text("3\n")
    [status] = cluster.provider().observe()
    assert status.phase is Phase.FAILED
    assert status.why == "burst-0-2 has ended with status 3: the disk is full"
    phases = [follower.phase for follower in status.followers]
    assert phases == [Phase.RUNNING, Phase.RUNNING, Phase.FAILED, Phase.RUNNING]
    assert status.followers[2].lost == "has ended with status 3"


@pytest.mark.parametrize(
    ("log", "words"),
    [
        (f"3: <3>{WRONG_VERSION[0]}\n", f": burst-0-3: {WRONG_VERSION[1]}"),
        ("0: <7>chatter\nsrun: error: n1: task 1: Killed\n", ": srun: error: n1: task"),
    ],
)
def test_a_job_that_failed_is_told_with_the_end_of_its_log(
    cluster: FakeCluster, log: str, words: str
) -> None:
    place = place_of(cluster)
    cluster.set("state", "FAILED|NonZeroExitCode")
    (place / "log").write_text(log)
    [status] = cluster.provider().observe()
    assert status.why.startswith(
        f"Slurm job 11 has failed (FAILED: NonZeroExitCode){words}"
    )
    assert {f.lost for f in status.followers} == {
        "Slurm job 11 has failed (FAILED: NonZeroExitCode)"
    }


def test_of_a_long_log_the_end_is_read(cluster: FakeCluster) -> None:
    place = place_of(cluster)
    cluster.set("state", "FAILED")
    (place / "log").write_text("0: at first\n" * 10_000 + "0: at last\n")
    [status] = cluster.provider().observe()
    assert status.why.endswith("at last")
    assert len(status.why) < 1000


def test_a_job_without_files_is_listed_and_taken_down(cluster: FakeCluster) -> None:
    """As where the directory was removed by hand."""
    place = place_of(cluster)
    for path in place.iterdir():
        path.unlink()
    place.rmdir()
    provider = cluster.provider()
    [status] = provider.observe()
    assert (status.burst_id, status.followers) == (cluster.spec().burst_id, ())
    reap_until_gone(provider, cluster.spec().burst_id)


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads all files")
def test_files_that_cannot_be_read_are_for_a_while(cluster: FakeCluster) -> None:
    place = place_of(cluster)
    place.chmod(0)
    try:
        with pytest.raises(Transient):
            cluster.provider().observe()
    finally:
        place.chmod(0o700)


def test_what_the_offer_does_not_have_is_refused(cluster: FakeCluster) -> None:
    with pytest.raises(SpecRefused, match="set cores and gpus of the provider"):
        cluster.provider(cores=2).provision(cluster.spec())
    assert cluster.argv() == []
