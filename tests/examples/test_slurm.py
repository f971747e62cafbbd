# SPDX-License-Identifier: MIT
"""The example of a provider for Slurm keeps the contract, and its followers join.

Programs of our own stand for Slurm's; they start and stop real followers of an embedded
lead.
"""

from __future__ import annotations

import contextlib
import shlex
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from contextlib import closing
from pathlib import Path
from typing import Any

import msgspec
import pytest

from burst.config import Seconds, convert, load
from burst.lead import Lead
from burst.model.lead import LeadIdentity
from burst.provider import (
    BurstSpec,
    InsufficientCapacity,
    NotFound,
    Phase,
    Provider,
    Refused,
    Transient,
)
from burst.testing import Backend, ProviderContract, example_lead, example_spec
from burst.testing.backend import Moment
from burst.testing.contract import Count, MakeProvider, MakeSpec
from tests.embedded_instance import embedded_instance
from tests.examples import slurm_programs
from tests.support.examples import load_example
from tests.support.fluxlead import short_directory
from tests.support.waiting import wait_until

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "slurm"
PROGRAMS = ("sbatch", "squeue", "scancel", "srun")

burst_slurm = load_example("slurm")


class Cluster:
    """A Slurm of our own, with programs on PATH."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.jobs = slurm_programs.World(path)
        self.jobs.jobs.mkdir()
        self.bin = path / "bin"
        self.bin.mkdir()
        for name in PROGRAMS:
            words = [sys.executable, "-IS", slurm_programs.__file__, str(path), name]
            (self.bin / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
            (self.bin / name).chmod(0o755)
        self.settings = burst_slurm.SlurmSettings(
            dir=str(path / "shared"), cores=4, max_nodes=4, time=Seconds(3600)
        )

    def provider(self, owner: str, name: str = "slurm", **changes: Any) -> Provider:
        settings = msgspec.structs.replace(self.settings, **changes)
        made: Provider = burst_slurm.SlurmProvider(name, settings, owner)
        return made

    def followers(self, spec: BurstSpec) -> dict[int, str]:
        """Return the command lines of a burst's followers, by pid."""
        found = {}
        for pid, _ in slurm_programs.processes():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
                line = " ".join(words)
                if words[1:4] == ["-m", "burst_embedded", "follower"] and (
                    f"/{spec.owner}." in line and f"/{spec.burst_id}/" in line
                ):
                    found[pid] = line
        return found

    def close(self) -> None:
        """End what runs."""
        for job in self.jobs.jobs.iterdir():
            for pid in self.jobs.group(job):
                slurm_programs.kill(pid, signal.SIGKILL)


class SlurmBackend(Backend):
    def __init__(self, cluster: Cluster, lead: Lead) -> None:
        self.cluster = cluster
        self.lead = lead

    @contextlib.contextmanager
    def _knob(self, name: str) -> Iterator[None]:
        (self.cluster.path / name).touch()
        yield
        (self.cluster.path / name).unlink()

    def unreachable(self) -> contextlib.AbstractContextManager[object]:
        return self._knob("down")

    def stalled(self) -> contextlib.AbstractContextManager[object]:
        return self._knob("stalled")

    def full(self, owner: str) -> Provider:
        (self.cluster.path / "full").touch()
        return self.cluster.provider(owner)

    def crashing(self, owner: str, when: Moment) -> Provider:
        (self.cluster.path / ("cut" if when == "after" else "down")).touch()
        provider = self.cluster.provider(owner)
        if when == "after":
            return provider
        return Dying(provider, self.cluster.path / "down")

    def named(self, owner: str, name: str) -> Provider:
        return self.cluster.provider(owner, name)

    def kill(self, spec: BurstSpec, host: str) -> None:
        def found() -> list[int]:
            lines = self.cluster.followers(spec).items()
            return [pid for pid, line in lines if f"--hostname {host} " in line]

        # The job runs by its word before its tasks have begun.
        wait_until(lambda: bool(found()), f"the task {host}")
        for pid in found():
            slurm_programs.kill(pid, signal.SIGKILL)

    def public(self, spec: BurstSpec) -> str:
        jobs = self.cluster.jobs.jobs.iterdir()
        files = [path for job in jobs for path in (job / "script", job / "argv")]
        lines = list(self.cluster.followers(spec).values())
        return "\n".join(lines + [path.read_text() for path in files])

    def given(self, spec: BurstSpec) -> str:
        [config] = (self.cluster.path / "shared").rglob("broker.toml")
        return config.read_text()

    def left(self, spec: BurstSpec) -> Sequence[str]:
        shared = self.cluster.path / "shared"
        rundirs = Path("/tmp").glob(f"{spec.burst_id}-*")
        found = [path for path in shared.rglob("*") if spec.burst_id in str(path)]
        return [str(path) for path in [*found, *rundirs]]

    def online(self, spec: BurstSpec) -> AbstractSet[int]:
        return self.lead.observe().online


class Dying:
    """A provider whose first provision finds no controller; then there is one."""

    def __init__(self, provider: Provider, down: Path) -> None:
        self.offers, self.observe = provider.offers, provider.observe
        self.reap, self._provision = provider.reap, provider.provision
        self._down = down

    def provision(self, spec: BurstSpec) -> None:
        try:
            self._provision(spec)
        finally:
            self._down.unlink(missing_ok=True)


@pytest.fixture(scope="module")
def lead() -> Iterator[Lead]:
    with embedded_instance() as instance, closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        yield lead


class TestSlurmProvider(ProviderContract):
    patience = 90.0
    pause = 0.1
    ends_leases = True
    lease = 12.0

    @pytest.fixture
    def cluster(self, monkeypatch: pytest.MonkeyPatch) -> Iterator[Cluster]:
        with short_directory() as path:
            cluster = Cluster(path)
            monkeypatch.setenv("PATH", f"{cluster.bin}:/usr/bin:/bin")
            yield cluster
            cluster.close()

    @pytest.fixture
    def backend(self, cluster: Cluster, lead: Lead) -> Backend:
        return SlurmBackend(cluster, lead)

    @pytest.fixture
    def identity(self, lead: Lead) -> LeadIdentity:
        return lead.identity()

    @pytest.fixture
    def make_provider(self, cluster: Cluster) -> MakeProvider:
        return cluster.provider

    @pytest.fixture
    def make_interrupted(self, cluster: Cluster) -> MakeProvider:
        def make(owner: str) -> Provider:
            (cluster.path / "down").touch()
            return Dying(cluster.provider(owner), cluster.path / "down")

        return make

    @pytest.fixture
    def make_spec(self, identity: LeadIdentity) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            lead = msgspec.structs.replace(identity, owner=owner)
            spec = example_spec(lead, number, "nodes")
            return msgspec.structs.replace(
                spec, shape=msgspec.structs.replace(spec.shape, gpus=0)
            )

        return make

    @pytest.fixture
    def misconfigured(self, cluster: Cluster) -> Callable[[], Provider]:
        return lambda: cluster.provider("owner-a", dir="/dev/null")

    @pytest.fixture
    def count(self, cluster: Cluster) -> Count | None:
        """Count tasks of jobs that have not ended, which have them by RUNNING."""

        def tasks(spec: BurstSpec) -> int:
            jobs = [
                job
                for job in cluster.jobs.jobs.iterdir()
                if (job / "comment").read_text().endswith(f"/{spec.burst_id}")
            ]
            ended = ("CANCELLED", "FAILED")
            live = [job for job in jobs if cluster.jobs.state(job) not in ended]
            return sum(int((job / "ntasks").read_text()) for job in live)

        return tasks


def test_the_example_is_short_and_its_settings_are_read() -> None:
    source = (EXAMPLE / "burst_slurm.py").read_text()
    assert len(source.splitlines()) < 150
    settings = load(EXAMPLE / "burst.toml")
    table = settings.providers["slurm"]
    assert str(settings.provision_limit("slurm")) == "1h"
    parsed = convert(burst_slurm.SlurmSettings, table.options, "x")
    [offer] = burst_slurm.SlurmProvider("slurm", parsed, "owner").offers()
    assert (offer.shape.cores, offer.max_nodes, offer.lifetime) == (64, 16, 14400)


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    cluster = Cluster(tmp_path)
    monkeypatch.setenv("PATH", f"{cluster.bin}:/usr/bin:/bin")
    return cluster


def test_a_controller_that_does_not_answer_is_for_a_moment(
    played: Cluster,
) -> None:
    (played.path / "down").touch()
    with pytest.raises(Transient, match="Unable to contact slurm controller"):
        played.provider("owner-a").observe()


@pytest.mark.parametrize(
    ("says", "error"),
    [
        ("Requested node configuration is not available", Refused),
        ("Requested time limit is invalid (missing or exceeds some limit)", Refused),
        ("Invalid account or account/partition combination specified", Refused),
        ("Job violates accounting/QOS policy", InsufficientCapacity),
        ("Requested partition configuration not available now", InsufficientCapacity),
        ("Unable to contact slurm controller", Transient),
    ],
)
def test_what_sbatch_says_is_in_its_class(
    played: Cluster, says: str, error: type[Exception]
) -> None:
    (played.path / "says").write_text(says)
    with pytest.raises(error, match=says[:30]):
        played.provider("owner-a").provision(spec_of(played))


@pytest.mark.parametrize(
    ("state", "phase"),
    [
        ("REQUEUED", Phase.PENDING),
        ("SUSPENDED", Phase.RUNNING),
        ("LAUNCH_FAILED", Phase.FAILED),
        ("SPECIAL_EXIT", Phase.FAILED),
        ("REVOKED", Phase.FAILED),
    ],
)
def test_what_a_job_is_in_is_told_and_it_is_canceled(
    played: Cluster, state: str, phase: Phase
) -> None:
    (played.path / "stalled").touch()
    provider, spec = played.provider("owner-a"), spec_of(played)
    provider.provision(spec)
    (played.path / "state").write_text(state)
    [status] = provider.observe()
    assert (status.phase, status.why) == (phase, f"{state}: None")
    provider.reap(spec.burst_id)
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)


def spec_of(played: Cluster) -> BurstSpec:
    spec = example_spec(example_lead(played.path), 0, "nodes")
    four_cores = msgspec.structs.replace(spec.shape, cores=4, gpus=0)
    return msgspec.structs.replace(spec, shape=four_cores)
