# SPDX-License-Identifier: MIT
"""A lead of real Flux grows into another real Flux, and what can happen there."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from burst_flux.provider import FluxProvider
from burst_flux.states import SETTLES_S

from burst.errors import Transient
from burst.model.finding import Level
from burst.model.lead import LeadIdentity
from burst.provider import BurstId, BurstSpec, BurstStatus, Failure, OwnedBurst, Phase
from burst.testing import example_spec
from tests.cli.cli_harness import open_harness
from tests.flux_instance import FLUX, MISSING, FluxInstance
from tests.plugins.flux.other_flux import OtherInstance, environment_of, rundirs
from tests.support.brokers import brokers
from tests.support.reaping import reap_until_gone
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.flux, pytest.mark.skipif(not FLUX, reason=MISSING)]


class Burst:
    """A burst of two nodes in the other instance, and its provider."""

    def __init__(self, other: OtherInstance, spec: BurstSpec) -> None:
        self.other = other
        self.spec = spec
        self.provider = other.provider(spec.owner)

    def status(self) -> BurstStatus:
        [found] = self.provider.observe()
        return found

    def wait_for(self, phase: Phase) -> BurstStatus:
        wait_until(lambda: self.status().phase is phase, self.status)
        return self.status()

    def provision(self) -> dict[str, int]:
        """Provision it, and return its brokers once they run."""
        self.provider.provision(self.spec)
        wait_until(lambda: len(brokers(self.spec.burst_id)) == 2, self.status)
        self.wait_for(Phase.RUNNING)
        return brokers(self.spec.burst_id)

    def joined(self) -> Path:
        """Return the log once both followers are in the lead."""
        [log] = self.other.files.rglob("log")
        wait_until(lambda: log.read_text().count("->run ") == 2, log.read_text)
        return log

    def jobs(self) -> list[str]:
        """Return the names of jobs that are not over."""
        return self.other.flux("jobs", "-n", "--format={name}").split()

    def check_that_nothing_is_left(self) -> None:
        assert self.jobs() == []
        assert list(self.other.files.glob(f"{self.spec.owner}.*")) == []
        assert rundirs(self.spec) == []
        assert brokers(self.spec.burst_id) == {}


def new_id() -> BurstId:
    return BurstId(f"burst-0-{os.urandom(3).hex()}")


@pytest.fixture
def spec(identity: LeadIdentity) -> BurstSpec:
    spec = example_spec(identity, 0, "nodes")
    return msgspec.structs.replace(
        spec,
        # A job that is over keeps its name, as its burst's id names one burst for good.
        burst_id=new_id(),
        shape=msgspec.structs.replace(spec.shape, gpus=0),
        lease_end=time.time() + 3600,
    )


@pytest.fixture
def burst(other: OtherInstance, spec: BurstSpec) -> Iterator[Burst]:
    burst = Burst(other, spec)
    yield burst
    reap_until_gone(burst.provider, spec.burst_id)
    burst.check_that_nothing_is_left()


def test_a_lead_grows_into_the_other_instance_and_a_job_runs_there(
    lead: FluxInstance, other: OtherInstance
) -> None:
    with open_harness(lead) as cli:
        cli.write(providers={"parent": other.table}, deadlines={"idle": "1s"})
        with cli.daemon():
            words = ("--setattr=burstable", "-N2", "--env=-*", "--env=PATH", "env")
            job = lead.flux("submit", *words)
            wait_until(
                lambda: lead.job_line("{status}", job) == "COMPLETED",
                lambda: cli.run("explain", job).stdout,
            )
            said = lead.flux("job", "attach", "--read-only", job)
            assert str(other.directory) not in said, "nothing is of the other instance"
            [row] = cli.status()["bursts"]
            cli.wait_for_state(row["id"], "inactive")
            row = cli.row(row["id"])
            assert (row["result"], row["note"]) == ("completed", "idle for 1s")
            lost = lead.flux("submit", "--setattr=burstable", "-N2", "sleep", "inf")
            wait_until(
                lambda: lead.job_line("{state}", lost) == "RUN",
                lambda: cli.run("explain", lost).stdout,
            )
            [theirs] = other.jobs()
            other.flux("cancel", "--message=for maintenance", theirs)
            row = cli.status()["bursts"][-1]
            cli.wait_for_state(row["id"], "inactive")
            why = f"burst {row['id']}: Flux job {theirs} was canceled: for maintenance"
            assert why in cli.run("explain", lost).stdout
        assert other.jobs() == []
        assert list(other.files.glob("*.parent")) == []


def test_a_second_job_waits_and_what_hangs_decides_nothing(burst: Burst) -> None:
    burst.provision()
    slow = burst.other.provider(burst.spec.owner, limit=0.5)
    with burst.other.hung(), pytest.raises(Transient):
        slow.observe()
    assert burst.wait_for(Phase.RUNNING).failure is Failure.OTHER
    # A request that was late is carried out now: the job waits for the first.
    [name] = burst.jobs()
    burst.other.flux("submit", f"--job-name={name}", "--dependency=singleton", "true")
    # It may be listed a moment after it was taken.
    wait_until(lambda: len(burst.jobs()) == 2, "the second job")
    assert burst.status().phase is Phase.RUNNING
    listed = burst.provider.list_all()
    own = OwnedBurst(
        owner=burst.spec.owner,
        provider="other",
        burst_id=burst.spec.burst_id,
        lease_end=burst.spec.lease_end,
    )
    assert set(listed) == {own}


def test_a_job_that_is_canceled_under_its_followers_is_told(burst: Burst) -> None:
    pids = burst.provision()
    log = burst.joined()
    foreign = ("FLUX_URI", "FLUX_JOB", "FLUX_TASK", "FLUX_KVS", "PMI", "TMPDIR", "CUDA")
    for pid in pids.values():
        assert [n for n in environment_of(pid) if n.startswith(foreign)] == []
        assert len(os.sched_getaffinity(pid)) == os.cpu_count()
    [job] = burst.other.jobs()
    burst.other.flux("cancel", "--message=for maintenance", job)
    status = burst.wait_for(Phase.FAILED)
    assert status.why.startswith(f"Flux job {job} was canceled: for maintenance")
    assert all(follower.lost for follower in status.followers)
    assert log.read_text().count("unload-builtins->exit") == 2, "they left in order"
    assert rundirs(burst.spec) == []
    burst.provider.provision(burst.spec)
    assert burst.jobs() == [], "it is not submitted again"


def test_followers_leave_before_the_time_limit_and_are_asked_once(burst: Burst) -> None:
    """Also where the burst is reaped meanwhile, again and again."""
    burst.provision()
    log = burst.joined()
    [job] = burst.other.jobs()
    asked = time.time()
    began = float(burst.other.flux("jobs", "-n", "--format={t_run}", job))
    now = time.time()
    # It is 30 s before the limit soon, when Flux is to signal it, and not before the
    # update: that takes about as long as the question.
    limit = now - began + 32 + 4 * (now - asked)
    burst.other.flux("update", job, f"duration={limit:.0f}s")
    with log.open() as text:
        said = [""]

        def signaled() -> bool:
            said.append(text.read())
            return "signal 15" in "".join(said)

        wait_until(signaled, lambda: "".join(said))
        reap_until_gone(burst.provider, burst.spec.burst_id)
        said.append(text.read())
    assert "".join(said).count("signal 15") == 2, "one for each broker"
    assert "".join(said).count("unload-builtins->exit") == 2, "they left in order"


def test_a_burst_waits_in_a_full_queue_until_nodes_are_free(burst: Burst) -> None:
    others = burst.other.flux("submit", "-N4", "--exclusive", "sleep", "inf")
    burst.other.flux("job", "wait-event", others, "alloc")
    burst.provider.provision(burst.spec)
    wait_until(lambda: len(burst.other.jobs()) == 2, "its job to be listed")
    [job] = set(burst.other.jobs()) - {others}
    wait_until(lambda: burst.status().why.endswith("waits for nodes"), burst.status)
    assert burst.status().phase is Phase.PENDING
    now = [time.time()]
    late = burst.other.provider(burst.spec.owner, clock=lambda: now[0])
    late.observe()
    now[0] += 3600.0
    [status] = late.observe()
    assert (status.phase, status.why) == (
        Phase.PENDING,
        f"Flux job {job} waits for nodes",
    )
    burst.other.flux("cancel", others)
    burst.wait_for(Phase.RUNNING)


def test_what_does_not_start_is_told(burst: Burst) -> None:
    with burst.other.stopped():
        burst.provider.provision(burst.spec)
        assert burst.status().phase is Phase.PENDING
        wait_until(burst.jobs, "its job to be listed")
        now = [time.time()]
        late = burst.other.provider(burst.spec.owner, clock=lambda: now[0])
        told = "waits in a queue that is stopped"
        wait_until(lambda: late.observe()[0].why.endswith(told), burst.status)
        now[0] += SETTLES_S
        [status] = late.observe()
        assert status.failure is Failure.CAPACITY
        assert status.why.endswith(told)
        reap_until_gone(burst.provider, burst.spec.burst_id)
    picky = ("--requires=no-such-property",)
    refused = burst.other.provider(burst.spec.owner, options=picky)
    burst.spec = msgspec.structs.replace(burst.spec, burst_id=new_id())
    refused.provision(burst.spec)
    wait_until(lambda: burst.status().failure is Failure.REFUSED, burst.status)
    assert "unsatisfiable" in burst.status().why
    reap_until_gone(burst.provider, burst.spec.burst_id)


def test_the_doctor_asks_the_instance(
    other: OtherInstance, identity: LeadIdentity, monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(provider: FluxProvider) -> list[str]:
        found = provider.examine(identity)
        return [finding.what for finding in found if finding.level is Level.WRONG]

    # `..` is the instance of FLUX_URI, where that is in no other.
    monkeypatch.setenv("FLUX_URI", other.settings.uri)
    assert wrong(other.provider("owner-a", uri="..")) == []
    [lacks] = wrong(other.provider("owner-a", gpus=2))
    assert lacks == "0 of its nodes have 4 cores, 2 GPUs, and max_nodes is 4"
    [queue] = wrong(other.provider("owner-a", queue="nosuch"))
    assert "nosuch" in queue
    # The lead is one of its jobs, as `burst lead batch` has it.
    lead = other.flux("submit", "-N1", "--exclusive", "sleep", "inf")
    path = identity.uri.removeprefix("local://")
    other.flux("job", "memo", lead, f"uri=ssh://{socket.gethostname()}{path}")
    # What the eventlog has is listed soon.
    wait_until(lambda: wrong(other.provider("owner-a")), "the lead's job to be listed")
    [beside] = wrong(other.provider("owner-a"))
    assert beside.startswith("3 of its nodes have 4 cores, beside those of job")
    other.flux("cancel", lead)
    wait_until(lambda: not wrong(other.provider("owner-a")), "the job to be over")
