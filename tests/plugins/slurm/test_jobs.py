# SPDX-License-Identifier: MIT
"""How jobs are submitted and found, and what errors of Slurm's programs mean."""

from __future__ import annotations

import re
import subprocess
import time
from typing import Any

import msgspec
import pytest
from burst_slurm.settings import SlurmSettings, batch_script
from burst_slurm.states import SETTLES_S

from burst.config import convert
from burst.errors import (
    ConfigError,
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)
from burst.provider import Phase
from tests.plugins.slurm.fake_cluster import FakeCluster
from tests.support.reaping import reap_until_gone


def test_nodes_that_slurm_has_taken_are_told(cluster: FakeCluster) -> None:
    provider, spec = cluster.provider(), cluster.spec()
    (cluster.bin / "flux").write_text("#!/bin/sh\nexec sleep 1000\n")
    (cluster.bin / "flux").chmod(0o755)
    provider.provision(spec)
    assert provider.observe()[0].why == ""
    (cluster.world.jobs / "11" / "ntasks").write_text("1")
    [status] = provider.observe()
    taken = "Slurm has taken 3 of its 4 nodes"
    assert (status.phase, status.why) == (Phase.RUNNING, taken)


@pytest.mark.parametrize(
    ("says", "error"),
    [
        ("Requested node configuration is not available", SpecRefused),
        ("Unspecified error", SpecRefused),
        ("Requested time limit is invalid (missing or exceeds some limit)", Refused),
        ("Invalid account or account/partition combination specified", Refused),
        ("Invalid partition name specified", Refused),
        ("Invalid generic resource (gres) specification", Refused),
        ("Requested reservation is invalid", Refused),
        ("Access denied to requested reservation", Refused),
        ("User's group not permitted to use this partition", Refused),
        ("unrecognized option '--no-such-option'", Refused),
        ("--mem, --mem-per-cpu, and --mem-per-gpu are mutually exclusive.", Refused),
        (
            "Job violates accounting/QOS policy (job submit limit, user's size and/or"
            " time limits)",
            InsufficientCapacity,
        ),
        ("Required partition not available (inactive or drain)", InsufficientCapacity),
        (
            "QOSMaxNodePerJobLimit\nsbatch: error: Job violates accounting/QOS policy",
            SpecRefused,
        ),
        (
            "QOSMaxSubmitJobPerUserLimit\nsbatch: error: accounting/QOS policy",
            InsufficientCapacity,
        ),
        ("Unable to contact slurm controller", Transient),
        ("The time limit is 1 h\nSocket timed out on send/recv operation", Transient),
        ("Slurm temporarily unable to accept job, sleeping and retrying", Transient),
    ],
)
def test_what_sbatch_says_is_in_its_class(
    cluster: FakeCluster, says: str, error: type[ProviderError]
) -> None:
    cluster.set("says", says)
    first = " ".join(says.split())[:30]
    with pytest.raises(error, match=re.escape(first)) as caught:
        cluster.provider().provision(cluster.spec())
    assert type(caught.value) is error


def test_a_second_job_waits_and_both_are_canceled(cluster: FakeCluster) -> None:
    """A request that timed out may be carried out after the next look."""
    cluster.set("cut")
    cluster.set("forgot")
    (cluster.bin / "flux").write_text("#!/bin/sh\nexec sleep 1000\n")
    (cluster.bin / "flux").chmod(0o755)
    provider, spec = cluster.provider(), cluster.spec()
    with pytest.raises(Transient):
        provider.provision(spec)
    # Its log may be there by now, and tells the same as its number.
    (cluster.dir / f"owner-a.slurm/{spec.burst_id}/log").unlink(missing_ok=True)
    provider.provision(spec)
    cluster.unset("forgot")
    first, second = cluster.argv()
    assert first == second
    assert "--dependency=singleton" in first
    [status] = provider.observe()
    assert (status.phase, cluster.states()) == (Phase.RUNNING, ["RUNNING", "PENDING"])
    reap_until_gone(provider, spec.burst_id)
    assert cluster.states() == ["CANCELLED", "CANCELLED"]


@pytest.mark.parametrize(
    ("file", "text"), [("name", "mine"), ("comment", "a|b"), ("comment", "(null)")]
)
def test_a_job_is_found_by_its_name_or_its_comment(
    cluster: FakeCluster, file: str, text: str
) -> None:
    """After `scontrol update`, as its user or an administrator may type it."""
    cluster.set("stalled")
    provider, spec = cluster.provider(), cluster.spec()
    provider.provision(spec)
    (cluster.world.jobs / "11" / file).write_text(text)
    [status] = provider.observe()
    assert status.why == "Slurm job 11 waits"
    reap_until_gone(provider, spec.burst_id)
    assert cluster.states() == ["CANCELLED"]


@pytest.mark.parametrize(
    ("accounts", "why"),
    [
        ("FAILED", "Slurm job 11 has failed (FAILED)"),
        ("Welcome\nCANCELLED by 1000", "Slurm job 11 was canceled (CANCELLED)"),
    ],
)
def test_how_a_job_ended_that_is_not_listed_is_in_the_accounts(
    cluster: FakeCluster, accounts: str, why: str
) -> None:
    cluster.set("stalled")
    provider, spec = cluster.provider(), cluster.spec()
    provider.provision(spec)
    cluster.set("forgot")
    cluster.set("sacct", accounts)
    [status] = provider.observe()
    assert (status.phase, status.why) == (Phase.FAILED, why)
    cluster.provider().provision(spec)
    assert len(cluster.argv()) == 1, "it is not submitted again"
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)


@pytest.mark.parametrize("accounts", [None, "RUNNING"])
def test_a_job_that_is_not_listed_for_a_moment_is_not_lost(
    cluster: FakeCluster, accounts: str | None
) -> None:
    cluster.set("stalled")
    if accounts:
        cluster.set("sacct", accounts)
    now = [time.time()]
    provider, spec = cluster.provider(clock=lambda: now[0]), cluster.spec()
    provider.provision(spec)
    for _ in range(2):
        cluster.set("forgot")
        [status] = provider.observe()
        assert status.phase is Phase.PENDING
        assert status.why.startswith("Slurm job 11 is not listed, and how it ended")
        provider.reap(spec.burst_id)
        now[0] += SETTLES_S - 1
        cluster.unset("forgot")
        [status] = provider.observe()
        assert status.why == "Slurm job 11 waits"
    cluster.set("forgot")
    [status] = provider.observe()
    now[0] += SETTLES_S
    provider.provision(spec)
    assert len(cluster.argv()) == 1, "it is not submitted again"
    [status] = provider.observe()
    assert status.phase is Phase.FAILED
    assert status.why.startswith("Slurm job 11 is not known any more, nor how it ended")
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)
    # A burst of the same name has its time again.
    provider.provision(spec)
    [status] = provider.observe()
    assert status.phase is Phase.PENDING


def test_the_options_of_a_job_are_those_of_the_settings(cluster: FakeCluster) -> None:
    cluster.set("stalled")
    provider = cluster.provider(
        partition="batch,long",
        account="physics",
        gpus=2,
        gpu_type="a100",
        exclusive=False,
        options=("--mem=64G", "--qos=normal"),
    )
    spec = cluster.spec()
    provider.provision(spec)
    place = cluster.dir / f"owner-a.slurm/{spec.burst_id}"
    [words] = cluster.argv()
    assert words == [
        "--parsable",
        f"--job-name=burst.owner-a.slurm.{spec.burst_id}",
        f"--comment=burst.owner-a.slurm.{spec.burst_id}",
        *("--dependency=singleton", "--no-requeue", "--no-kill"),
        *(f"--output={place}/log", "--chdir=/", "--export=ALL", "--propagate=NONE"),
        *("--nodes=4", "--ntasks=4", "--ntasks-per-node=1", "--cpus-per-task=4"),
        *("--time=60", "--partition=batch,long", "--account=physics"),
        *("--gres=gpu:a100:2", "--mem=64G", "--qos=normal"),
    ]


@pytest.mark.parametrize(
    ("lease", "minutes"),
    [(0, 60), (7200, 60), (601, 11), (600, 10), (1, 1)],
)
def test_the_job_ends_with_the_lease(
    cluster: FakeCluster, lease: float, minutes: int
) -> None:
    cluster.set("stalled")
    now = 1_000_000.0
    end = now + lease if lease else 0.0
    spec = msgspec.structs.replace(cluster.spec(), lease_end=end)
    cluster.provider(clock=lambda: now).provision(spec)
    assert f"--time={minutes}" in cluster.argv()[0]


def test_variables_of_other_work_do_not_reach_slurms_programs(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = cluster.path / "seen"
    squeue = cluster.bin / "squeue"
    squeue.write_text(f"#!/bin/sh\nenv > {seen}\n")
    monkeypatch.setenv("SQUEUE_FORMAT", "%i")
    monkeypatch.setenv("SLURM_JOB_ID", "9")
    monkeypatch.setenv("SBATCH_PARTITION", "other")
    monkeypatch.setenv("SLURM_CONF", "/etc/other/slurm.conf")
    assert cluster.provider(cluster="east").observe() == []
    lines = [line for line in seen.read_text().splitlines() if "SLURM" in line]
    lines += [line for line in seen.read_text().splitlines() if line[:2] == "SB"]
    assert sorted(lines) == ["SLURM_CONF=/etc/other/slurm.conf", "SLURM_TIME_FORMAT=%s"]


def test_a_job_gets_few_variables_of_the_daemon(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = cluster.path / "seen"
    (cluster.bin / "sbatch").write_text(f"#!/bin/sh\nenv > {seen}\necho 7\n")
    given = {"HOME": "/home/ann", "SLURM_CONF": "/etc/slurm.conf"}
    others = {
        "TOKEN": "x",
        "TMPDIR": "/tmp/1",
        "SBATCH_QOS": "high",
        "SLURM_JOBID": "1",
    }
    for name, value in {**given, **others}.items():
        monkeypatch.setenv(name, value)
    cluster.provider().provision(cluster.spec())
    lines = dict(line.split("=", 1) for line in seen.read_text().splitlines())
    assert given.items() <= lines.items()
    assert others.keys() & lines.keys() == set()


def test_variables_of_the_job_neither_confine_nor_authenticate_its_tasks(
    cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As sbatch sets them by `--cpus-per-task`, or takes them from the daemon."""
    seen = cluster.path / "seen"
    (cluster.bin / "srun").write_text(f"#!/bin/sh\nenv > {seen}\n")
    names = ["CPUS_PER_TASK", "TRES_PER_TASK", "JWT", "JOB_ID"]
    for name in names:
        monkeypatch.setenv(f"SLURM_{name}", "1")
    subprocess.run(["/bin/sh", "-c", batch_script(cluster.path / "task")], check=True)
    lines = seen.read_text().splitlines()
    # These tests may run in a job of Slurm, which has others.
    left = [name for name in names if f"SLURM_{name}=1" in lines]
    assert left == ["JOB_ID"]


GOOD: dict[str, Any] = {"dir": "/shared", "cores": 4, "max_nodes": 2, "time": "1h"}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"dir": "shared"}, "not an absolute path"),
        ({"dir": "/a%b"}, "not an absolute path"),
        ({"time": "30s"}, "time: 30s is less than 1m"),
        ({"time": "inf"}, "or has no end"),
        ({"gpu_type": "a100"}, "set gpus, too"),
        ({"cluster": "east,west"}, "'east,west' is not one cluster"),
        ({"cluster": "all"}, "'all' is not one cluster"),
        ({"options": ["-p", "batch"]}, "is not of the form"),
        ({"options": ["--job-n=x"]}, "set by a key of this table"),
        ({"options": ["--export=ALL"]}, "set by a key of this table"),
        ({"options": ["--array=1-3"]}, "set by a key of this table"),
        ({"options": ["--time-min=5"]}, "set by a key of this table"),
        ({"options": ["--signal=USR1@60"]}, "set by a key of this table"),
        ({"nodes": 3}, "no such key"),
    ],
)
def test_what_cannot_work_is_refused(wrong: dict[str, Any], says: str) -> None:
    own = {"options": ["--mem-per-cpu=2G", "--hint=nomultithread", "--nice"]}
    assert convert(SlurmSettings, {**GOOD, **own}, "burst.toml").exclusive
    with pytest.raises(ConfigError, match=says):
        convert(SlurmSettings, {**GOOD, **wrong}, "burst.toml")
