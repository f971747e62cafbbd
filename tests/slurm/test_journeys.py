# SPDX-License-Identifier: MIT
"""Bursts in a real Slurm, for a lead of real Flux: their way, and what happens to them.

Commands are those that users, administrators and Slurm's programs type.
"""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_slurm.provider import SlurmProvider

from burst.config import Seconds
from burst.errors import NotFound, Transient
from burst.model.finding import Level
from burst.provider import BurstId, BurstSpec, BurstStatus, Failure, Phase
from burst.testing import example_spec
from tests.cli.cli_harness import CliHarness, open_harness
from tests.flux_instance import FluxInstance
from tests.slurm.slurm_lab import CGROUP, LINUXPROC, SlurmLab
from tests.support.brokers import brokers, stopped
from tests.support.reaping import reap_until_gone
from tests.support.waiting import wait_until

# What Slurm, a site and its MPI give to tasks of a job.
FOREIGN = ("SLURM", "PMI", "TMPDIR")
# Bytes: below 64 KiB, which is the hard limit of older kernels.
_LOCKED = 13 * 4096

pytestmark = [pytest.mark.slurm, pytest.mark.flux]


class Cluster:
    """A provider in the lab, and one burst of it at a time."""

    def __init__(self, lab: SlurmLab, spec: BurstSpec) -> None:
        self.lab = lab
        self.spec = spec
        self.provider = self.make()

    def make(self, **changes: Any) -> SlurmProvider:
        chosen: dict[str, Any] = {"gpus": 1, "gpu_type": "k80"}
        chosen["options"] = ("--constraint=intel", "--licenses=matlab:1")
        chosen |= {"flux": shutil.which("flux"), **changes}
        return self.lab.provider(self.spec.owner, **chosen)

    def status(self) -> BurstStatus:
        """Return the burst's status."""
        [found] = self.provider.observe()
        return found

    def wait_for(self, phase: Phase) -> BurstStatus:
        """Wait until the burst is in that phase."""
        wait_until(lambda: self.status().phase is phase, self.status)
        return self.status()

    def job(self) -> str:
        """Return the number of its one job that has not ended."""
        [number] = self.lab.jobs("%i")
        return number

    def running(self) -> list[str]:
        """Return the numbers of jobs that run."""
        jobs = (line.split() for line in self.lab.jobs("%i %T"))
        return [number for number, state in jobs if state == "RUNNING"]

    def log(self) -> str:
        """Return what its followers have written."""
        [log] = self.lab.dir.rglob("log")
        return log.read_text(errors="replace")

    def check_that_nothing_is_left(self) -> None:
        assert self.lab.jobs() == []
        assert not self.lab.dir.exists() or list(self.lab.dir.iterdir()) == []
        assert list(Path("/tmp").glob(f"{self.spec.burst_id}-*")) == []
        assert brokers(self.spec.burst_id) == {}


@pytest.fixture
def place(cluster: SlurmLab, instance: FluxInstance) -> Iterator[Cluster]:
    with closing(instance.lead()) as lead:
        identity = lead.identity()
    spec = msgspec.structs.replace(
        example_spec(identity, 0, "nodes"), lease_end=time.time() + 3600
    )
    found = Cluster(cluster, spec)
    try:
        yield found
        reap_until_gone(found.provider, spec.burst_id)
        found.check_that_nothing_is_left()
    finally:
        cluster.cancel_all()


@pytest.fixture
def cli(cluster: SlurmLab, instance: FluxInstance) -> Iterator[CliHarness]:
    with open_harness(instance) as cli:
        cli.write(
            providers={
                "cluster": {
                    "type": "slurm",
                    "dir": str(cluster.dir),
                    "time": "1h",
                    "cores": 4,
                    "gpus": 1,
                    "max_nodes": 4,
                    "flux": shutil.which("flux"),
                }
            },
            deadlines={"idle": "1s"},
        )
        try:
            yield cli
        finally:
            cluster.cancel_all()


def test_a_job_runs_on_slurms_nodes_with_nothing_of_slurms_environment(
    cli: CliHarness, cluster: SlurmLab, instance: FluxInstance
) -> None:
    with cli.daemon():
        words = ("--setattr=burstable", "-N2", "--env=-*", "--env=PATH", "env")
        job = instance.flux("submit", *words)
        wait_until(
            lambda: instance.job_line("{status}", job) == "COMPLETED",
            lambda: cli.run("explain", job).stdout,
        )
        seen = instance.flux("job", "attach", "--read-only", job).splitlines()
        assert any(line.startswith("FLUX_JOB_ID=") for line in seen)
        names = {line.partition("=")[0] for line in seen}
        # Flux has PMI_ variables of its own.
        theirs = ("SLURM", "SBATCH", "SRUN", "PMIX", "TMPDIR")
        assert [name for name in names if name.startswith(theirs)] == []
        [row] = cli.status()["bursts"]
        cli.wait_for_state(row["id"], "inactive")
        row = cli.row(row["id"])
        assert (row["result"], row["note"]) == ("completed", "idle for 1s")
        assert cluster.jobs() == []
        assert list(cluster.dir.iterdir()) == []
        assert list(Path("/tmp").glob(f"{row['id']}-*")) == []


def environs() -> Iterator[list[str]]:
    """Yield the variables of each process."""
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            yield path.read_text(errors="replace").split("\0")


@contextmanager
def locked_memory(limit: int) -> Iterator[None]:
    """Have this process, as a daemon of systemd, lock no more bytes than that."""
    before, hard = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_MEMLOCK, (before, hard))


@pytest.mark.parametrize("lab", [LINUXPROC, CGROUP], indirect=True)
def test_the_brokers_leave_in_order_before_slurm_kills_them(place: Cluster) -> None:
    with locked_memory(_LOCKED):
        place.provider.provision(place.spec)
    place.wait_for(Phase.RUNNING)
    wait_until(lambda: len(brokers(place.spec.burst_id)) == 2, "the brokers to run")
    wait_until(lambda: place.log().count("->run ") == 2, place.log)
    for pid in brokers(place.spec.burst_id).values():
        environ = Path(f"/proc/{pid}/environ").read_text()
        assert not [w for w in environ.split("\0") if w.startswith(FOREIGN)]
        limits = Path(f"/proc/{pid}/limits").read_text()
        assert not re.search(rf"^Max locked memory +{_LOCKED} ", limits, re.MULTILINE)
    # Of the scripts, which nothing of the user's login shell has reached.
    name = f"SLURM_JOB_NAME=burst.{place.spec.owner}.slurm.{place.spec.burst_id}"
    scripts = [words for words in environs() if name in words]
    assert scripts
    assert not [words for words in scripts if "SLURM_GET_USER_ENV=1" in words]
    # The file is gone then, but not what was written to it.
    with next(place.lab.dir.rglob("log")).open() as log:
        reap_until_gone(place.provider, place.spec.burst_id)
        said = log.read()
    assert said.count("unload-builtins->exit") == 2, said


def test_a_node_that_slurm_takes_from_a_job_is_told(place: Cluster) -> None:
    place.provider.provision(place.spec)
    place.wait_for(Phase.RUNNING)
    wait_until(lambda: len(brokers(place.spec.burst_id)) == 2, "the brokers to run")
    [nodes] = place.lab.jobs("%N")
    last = place.lab.slurm("scontrol", "show", "hostnames", nodes).splitlines()[-1]
    node = ("scontrol", "update", f"NodeName={last}")
    place.lab.slurm(*node, "State=DOWN", "Reason=test")
    try:
        told = "Slurm has taken 1 of its 2 nodes"
        wait_until(lambda: place.status().why == told, place.status)
        assert place.status().phase is Phase.RUNNING
        reap_until_gone(place.provider, place.spec.burst_id)
    finally:
        # It may be back by itself (ReturnToService).
        with suppress(AssertionError):
            place.lab.slurm(*node, "State=RESUME")
        # Slurm kills what is on such a node.
        for rundir in Path("/tmp").glob(f"{place.spec.burst_id}-*"):
            shutil.rmtree(rundir)


def test_a_suspended_job_is_waited_for_and_a_canceled_one_is_told(
    place: Cluster,
) -> None:
    place.provider.provision(place.spec)
    place.wait_for(Phase.RUNNING)
    name, number = place.spec.burst_id, place.job()
    wait_until(lambda: len(brokers(name)) == 2, "the brokers to run")
    place.lab.slurm("scontrol", "suspend", number)
    assert "is suspended" in place.wait_for(Phase.PENDING).why
    wait_until(lambda: stopped(name).issuperset(brokers(name).values()), "the stop")
    place.lab.slurm("scontrol", "resume", number)
    place.wait_for(Phase.RUNNING)
    # While a node has not resumed the job yet, scancel kills it there by SIGKILL.
    wait_until(lambda: not stopped(name), "the job to go on")
    place.lab.slurm("scancel", number)
    status = place.wait_for(Phase.FAILED)
    assert status.why.startswith(f"Slurm job {number} was canceled (CANCELLED)")
    place.provider.provision(place.spec)
    assert place.lab.jobs() == [], "it is not submitted again"


def test_why_followers_did_not_start_is_told_once_the_epilog_is_done(
    place: Cluster,
) -> None:
    provider = place.make(flux="/no/such/flux")
    with place.lab.epilog_held():
        provider.provision(place.spec)
        wait_until(lambda: "(COMPLETING" in place.status().why, place.status)
        assert place.status().phase is Phase.PENDING
    assert "/no/such/flux" in place.wait_for(Phase.FAILED).why


def test_one_follower_is_lost_and_the_other_goes_on(place: Cluster) -> None:
    place.provider.provision(place.spec)
    place.wait_for(Phase.RUNNING)
    wait_until(lambda: len(brokers(place.spec.burst_id)) == 2, "the brokers to run")
    lost, kept = place.spec.hosts
    os.kill(brokers(place.spec.burst_id)[lost], signal.SIGKILL)
    status = place.wait_for(Phase.FAILED)
    assert status.why.startswith(f"{lost} has ended with status 137")
    phases = {follower.host: follower.phase for follower in status.followers}
    assert phases == {lost: Phase.FAILED, kept: Phase.RUNNING}
    assert kept in brokers(place.spec.burst_id)


def test_what_slurm_does_not_start_is_told_with_its_reason(place: Cluster) -> None:
    """One for which there is no room now is the contract's."""
    hosts, ranks = place.spec.hosts[:1], place.spec.ranks[:1]
    place.spec = msgspec.structs.replace(place.spec, hosts=hosts, ranks=ranks)
    place.make(partition="few", time=Seconds(600)).provision(place.spec)
    wait_until(lambda: place.status().failure is Failure.REFUSED, place.status)
    assert place.status().phase is Phase.FAILED
    # PartitionTimeLimit, or PartitionConfig before the scheduler has looked at it.
    assert "asks for more than a limit allows (Partition" in place.status().why


def test_more_nodes_than_a_partition_allows_are_told_once_that_has_lasted(
    place: Cluster,
) -> None:
    """Slurm gives the same reason while nodes are down."""
    place.provider = place.make(partition="few", time=Seconds(300), pace=30.0)
    place.provider.provision(place.spec)
    wait_until(lambda: place.status().failure is Failure.CAPACITY, place.status)
    assert "(PartitionNodeLimit)" in place.status().why


def test_a_controller_that_hangs_decides_nothing_and_makes_no_second_job(
    place: Cluster,
) -> None:
    """sbatch is killed or gives up, and the controller has read its request."""
    with hung(place.lab), pytest.raises(Transient):
        place.provider.provision(place.spec)
    place.provider.provision(place.spec)
    place.wait_for(Phase.RUNNING)
    [first] = place.running()
    # Without its controller Slurm starts no task of a job that runs: srun fails.
    begun = len(place.spec.hosts)
    wait_until(lambda: len(brokers(place.spec.burst_id)) == begun, place.status)
    with hung(place.lab):
        with pytest.raises(Transient):
            place.provider.observe()
        with pytest.raises(Transient):
            place.provider.reap(place.spec.burst_id)
    assert place.running() == [first]
    # It is restarted, and its jobs go on.
    with place.lab.controller_away(), pytest.raises(Transient):
        place.provider.observe()
    place.wait_for(Phase.RUNNING)
    assert place.running() == [first]
    # A request that was late is carried out now: the job waits for the first.
    name = place.lab.jobs("%j")[0]
    late = ("--parsable", f"--job-name={name}", "--dependency=singleton")
    place.lab.slurm("sbatch", *late, "--output=/dev/null", "--wrap=sleep inf")
    assert "PENDING singleton(unfulfilled)" in place.lab.jobs("%T %E")
    assert place.status().phase is Phase.RUNNING
    with pytest.raises(NotFound):
        place.provider.reap(BurstId("burst-9-000000"))
    place.lab.slurm("scontrol", "update", f"JobId={first}", "JobName=other")
    assert place.status().phase is Phase.RUNNING
    reap_until_gone(place.provider, place.spec.burst_id)
    assert place.lab.jobs() == []


@contextmanager
def hung(lab: SlurmLab) -> Iterator[None]:
    """Have the controller answer nobody in the block."""
    lab.stop_controller()
    try:
        yield
    finally:
        lab.go_on_controller()


def test_the_doctor_asks_slurm(place: Cluster) -> None:
    found = place.provider.examine(None)
    wrong = [finding.what for finding in found if finding.level is Level.WRONG]
    assert wrong == []
    assert found[-1].what == "Slurm takes jobs of 1 to 4 nodes"
    found = place.make(partition="few").examine(None)
    [limit, nodes] = [each.what for each in found if each.level is Level.WRONG]
    assert limit == "partition few ends jobs after 5m, and time is 1h"
    assert nodes.startswith("Slurm takes no job of 4 nodes")
    wrong_settings: list[dict[str, Any]] = [
        {"options": ("--licenses=none:1",)},
        {"options": ("--constraint=arm",)},
        {"partition": "none"},
        {"gpus": 2},
    ]
    for changes in wrong_settings:
        last = place.make(**changes).examine(None)[-1].what
        assert last.startswith("Slurm takes no job of 1 nodes"), changes
