# SPDX-License-Identifier: MIT
"""How a burst ends, and who is left alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest
from burst_local.processes import ProcessIdentity, identity_of, scan

from burst.errors import NotFound, Refused, Transient
from burst.model.burst import BurstId
from burst.model.lead import HostEntry
from burst.provider import BurstSpec, Phase
from tests.plugins.local.harness import SLEEP, STUBBORN, LocalHarness, wait_said
from tests.support.reaping import reap_until_gone
from tests.support.waiting import wait_until


def test_what_does_not_is_asked_again_now_and_then_and_killed_after_the_grace(
    local: LocalHarness,
) -> None:
    local.script = STUBBORN
    provider, spec = local.ready()
    provider.reap(spec.burst_id)
    with pytest.raises(Transient, match="is being reaped"):
        provider.provision(spec)
    wait_said(local, spec, "asked")
    local.now += 1.9
    provider.reap(spec.burst_id)
    wait_ticks(local, spec)
    assert _times_asked(local, spec) == [1, 1]
    local.now += 8.0
    provider.reap(spec.burst_id)
    wait_until(lambda: _times_asked(local, spec) == [2, 2], "the second time")
    status = local.status(provider)
    assert status.phase is Phase.ENDING
    assert "have not ended yet" in status.why
    assert {f.host for f in status.followers} == set(spec.hosts)
    local.now += 0.1
    provider.reap(spec.burst_id)
    # One that ends shows no tags any more a moment before it has ended.
    reap_until_gone(provider, spec.burst_id)


def wait_ticks(local: LocalHarness, spec: BurstSpec) -> None:
    """Wait until every follower went on with its work, signals before that heeded."""
    before = [log.count("tick") for log in local.logs(spec)]
    wait_until(
        lambda: all(
            log.count("tick") > n + 2
            for log, n in zip(local.logs(spec), before, strict=True)
        ),
        "ticks",
    )


def _times_asked(local: LocalHarness, spec: BurstSpec) -> list[int]:
    return [log.count("asked") for log in local.logs(spec)]


def test_the_grace_goes_on_after_a_restart(local: LocalHarness) -> None:
    local.script = STUBBORN
    spec = local.spec()
    local.provider().provision(spec)
    wait_said(local, spec, "ready")
    local.provider().reap(spec.burst_id)
    local.now += 10
    local.provider().reap(spec.burst_id)
    wait_until(lambda: not local.pids(spec.burst_id), "their end")


@pytest.mark.parametrize("left", ["nothing", "directories", "empty directory"])
def test_half_made_it_is_listed_and_reaped(left: str, local: LocalHarness) -> None:
    spec = local.spec()
    place = local.home.burst(spec.burst_id)
    if left != "nothing":
        local.home.open()
        place.path.mkdir(0o700)
    if left == "directories":
        place.make(spec, "")
        (place.path / "spec.json").unlink()
    provider = local.provider()
    phases = [status.phase for status in provider.observe()]
    assert phases == ([] if left == "nothing" else [Phase.PENDING])
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)
    assert not place.exists()


@pytest.mark.parametrize("lost", ["born", "spec.json", "everything"])
def test_a_follower_is_found_by_its_tags_whatever_is_lost_on_disk(
    lost: str, local: LocalHarness
) -> None:
    spec = local.spec()
    local.provider().provision(spec)
    place = local.home.burst(spec.burst_id)
    before = local.pids(spec.burst_id)
    if lost == "everything":
        shutil.rmtree(local.home.path)
    for path in place.path.rglob(lost):
        path.unlink()

    provider = local.provider()
    status = local.status(provider)
    assert [f.phase for f in status.followers] == [Phase.RUNNING] * 2
    provider.provision(spec)
    assert local.pids(spec.burst_id) == before
    assert local.status(provider).phase is Phase.RUNNING
    local.reap_all(provider, spec.burst_id)
    assert local.pids(spec.burst_id) == set()

    def left() -> list[int]:
        # One that ends shows no tags any more a moment before it can be waited for.
        provider.observe()
        return [pid for pid in before if Path(f"/proc/{pid}").exists()]

    wait_until(lambda: not left(), "a zombie")


@contextmanager
def bystander(**environ: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a process that nobody but this test may end."""
    process = subprocess.Popen(["sleep", "1000"], env=environ, start_new_session=True)
    try:
        wait_until(lambda: process.pid in scan(), "the bystander")
        yield process
        assert process.poll() is None, "a process that is not ours was touched"
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("change", ["start", "boot"])
def test_a_recycled_pid_is_not_touched(change: str, local: LocalHarness) -> None:
    spec = local.spec()
    local.home.open()
    place = local.home.burst(spec.burst_id)
    place.make(spec, "")
    follower = place.follower(spec.hosts[0])
    with bystander() as other:
        identity = identity_of(other.pid)
        follower.record(
            msgspec.structs.replace(identity, start=identity.start - 1)
            if change == "start"
            else msgspec.structs.replace(identity, boot="another")
        )
        provider = local.provider(grace=0)
        assert local.status(provider).followers[0].phase is Phase.FAILED
        assert local.status(provider).followers[0].why == "is gone: its log is empty"
        with pytest.raises(NotFound):
            provider.reap(spec.burst_id)


def test_who_looks_at_a_follower_is_not_a_part_of_it(local: LocalHarness) -> None:
    spec = local.spec()
    provider = local.provider(grace=0)
    provider.provision(spec)
    socket = local.place(spec).path / "local"
    with bystander(FLUX_URI=f"local://{socket}"):
        local.reap_all(provider, spec.burst_id)


@pytest.mark.parametrize("tags", [{"BURST_ID": "../x"}, {"BURST_HOST": ".."}, {}])
def test_tags_of_nothing_are_ignored(tags: dict[str, str], local: LocalHarness) -> None:
    mine = {"BURST_OWNER": local.owner, "BURST_PROVIDER": "here"}
    with bystander(**mine, **tags):
        assert local.provider().observe() == []


def test_a_host_may_have_a_domain(local: LocalHarness) -> None:
    tags = {"BURST_OWNER": local.owner, "BURST_PROVIDER": "here"}
    tags |= {"BURST_ID": "burst-0-1", "BURST_HOST": "n0.example"}
    with bystander(**tags):
        (follower,) = local.status(local.provider()).followers
        assert (follower.host, follower.phase) == ("n0.example", Phase.RUNNING)


@pytest.mark.parametrize("burst_id", ["../..", "", "a/b"])
def test_what_is_no_burst_id_is_not_found(burst_id: str, local: LocalHarness) -> None:
    provider, spec = local.provider(), local.spec(burst_id=BurstId(burst_id))
    for call in (lambda: provider.reap(spec.burst_id), lambda: provider.resize(spec)):
        with pytest.raises(NotFound):
            call()


def test_nothing_is_killed_by_what_others_could_write(local: LocalHarness) -> None:
    provider, spec = local.begun(grace=0)
    local.home.path.chmod(0o777)
    for call in (provider.observe, lambda: provider.reap(spec.burst_id)):
        with pytest.raises(Refused, match="others may write"):
            call()
    assert local.pids(spec.burst_id)
    local.home.path.chmod(0o700)


JOB = "env -i FLUX_URI=local://$PWD/local PATH=$PATH sleep 1000"


@pytest.mark.parametrize(
    "job",
    [f"{JOB} & {SLEEP}", f"setsid sleep 1000 & {SLEEP}"],
    ids=["as Flux starts jobs", "in a session of its own"],
)
def test_jobs_without_broker_end_with_the_burst(job: str, local: LocalHarness) -> None:
    local.script = job
    provider, spec = local.begun(nodes=1)
    identity = local.place(spec).identity()
    assert identity
    wait_until(lambda: len(_sleepers(identity, spec)) == 2, "broker and job")
    os.kill(identity.pid, signal.SIGKILL)
    wait_until(lambda: len(_sleepers(identity, spec)) == 1, "the broker's end")
    assert local.status(provider).phase is Phase.FAILED
    local.reap_all(provider, spec.burst_id)
    # One that ends shows no tags any more a moment before it has ended.
    wait_until(lambda: not _sleepers(identity, spec), "the job's end")


def _sleepers(identity: ProcessIdentity, spec: BurstSpec) -> set[int]:
    return {
        process.pid
        for process in scan().values()
        if process.session == identity.pid
        or process.environ.get("BURST_ID") == spec.burst_id
    }


def test_what_is_in_a_followers_session_is_killed_with_it(local: LocalHarness) -> None:
    local.script = f"trap '' TERM; env -i PATH=$PATH sleep 1000 & {STUBBORN}"
    provider, spec = local.ready(nodes=1, grace=0)
    identity = local.place(spec).identity()
    assert identity
    local.reap_all(provider, spec.burst_id)
    # Once the broker is gone, what shows no tags is not known to be of the burst.
    wait_until(lambda: not _sleepers(identity, spec), "the end of the session")


def test_while_a_broker_lives_its_jobs_are_its_own_to_end(local: LocalHarness) -> None:
    local.script = (
        "setsid sh -c \"trap 'echo job was told' TERM; while :; do sleep 0.05; done\" &"
        + STUBBORN
    )
    provider, spec = local.ready(nodes=1)
    # What the scripts start ends too soon to be counted on.
    wait_until(lambda: len(_sessions(spec)) == 2, "the job")
    provider.reap(spec.burst_id)
    wait_said(local, spec, "asked")
    wait_ticks(local, spec)
    assert "told" not in local.logs(spec)[0]


def _sessions(spec: BurstSpec) -> set[int]:
    found = scan().values()
    return {p.session for p in found if p.environ.get("BURST_ID") == spec.burst_id}


def test_a_gateway_is_asked_to_end_after_those_behind_it(local: LocalHarness) -> None:
    local.script = f"echo ready; {SLEEP}"
    provider, spec = local.provider(), _behind_a_gateway(local.spec(nodes=3))
    provider.provision(spec)
    wait_said(local, spec, "ready")
    provider.reap(spec.burst_id)
    wait_until(lambda: len(local.pids(spec.burst_id)) == 1, "the others' end")
    (last,) = local.pids(spec.burst_id)
    assert scan()[last].environ["BURST_HOST"] == spec.hosts[0]
    local.reap_all(provider, spec.burst_id)


def _behind_a_gateway(spec: BurstSpec) -> BurstSpec:
    uri = "tcp://127.0.0.1:1"
    entries = (
        HostEntry("lead-0", bind=uri, connect=uri),
        HostEntry("burst-0-0", bind=uri, connect=uri),
        HostEntry("burst-0-[1-3]", parent="burst-0-0"),
        *spec.lead.bootstrap.hosts[2:],
    )
    bootstrap = msgspec.structs.replace(spec.lead.bootstrap, hosts=entries)
    lead = msgspec.structs.replace(spec.lead, bootstrap=bootstrap)
    return msgspec.structs.replace(spec, lead=lead)
