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

from burst.errors import NotFound, Refused
from burst.model.burst import BurstId
from burst.model.lead import HostEntry
from burst.provider import BurstSpec, Phase
from tests.plugins.local.harness import SLEEP, Bench
from tests.support.fluxlead import wait_until

STUBBORN = "trap 'echo asked' TERM; echo ready; while :; do echo tick; sleep 0.05; done"


def wait_said(bench: Bench, spec: BurstSpec, word: str) -> None:
    """Wait until every follower said it."""
    wait_until(lambda: all(word in log for log in bench.logs(spec)), word)


def test_what_heeds_sigterm_is_gone_with_its_directory(bench: Bench) -> None:
    provider, spec = bench.provider(), bench.spec()
    provider.provision(spec)
    provider.reap(spec.burst_id)
    bench.reap_all(provider, spec.burst_id)
    assert bench.pids(spec.burst_id) == set()
    assert not bench.home.path.exists()
    assert provider.observe() == []


def test_what_does_not_is_asked_again_now_and_then_and_killed_after_the_grace(
    bench: Bench,
) -> None:
    bench.script = STUBBORN
    provider, spec = bench.provider(grace=10), bench.spec()
    provider.provision(spec)
    wait_said(bench, spec, "ready")
    provider.reap(spec.burst_id)
    wait_said(bench, spec, "asked")
    bench.now += 1.9
    provider.reap(spec.burst_id)
    wait_ticks(bench, spec)
    assert _times_asked(bench, spec) == [1, 1]
    bench.now += 8.0
    provider.reap(spec.burst_id)
    wait_until(lambda: _times_asked(bench, spec) == [2, 2], "the second time")
    status = bench.status(provider)
    assert status.phase is Phase.ENDING
    assert "have not ended yet" in status.why
    assert {f.host for f in status.followers} == set(spec.hosts)
    bench.now += 0.1
    provider.reap(spec.burst_id)
    wait_until(lambda: not bench.pids(spec.burst_id), "their end")
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)


def wait_ticks(bench: Bench, spec: BurstSpec) -> None:
    """Wait until every follower went on with its work, signals before that heeded."""
    before = [log.count("tick") for log in bench.logs(spec)]
    wait_until(
        lambda: all(
            log.count("tick") > n + 2
            for log, n in zip(bench.logs(spec), before, strict=True)
        ),
        "ticks",
    )


def _times_asked(bench: Bench, spec: BurstSpec) -> list[int]:
    return [log.count("asked") for log in bench.logs(spec)]


def test_the_grace_goes_on_after_a_restart(bench: Bench) -> None:
    bench.script = STUBBORN
    spec = bench.spec()
    bench.provider().provision(spec)
    wait_said(bench, spec, "ready")
    bench.provider(grace=10).reap(spec.burst_id)
    bench.now += 10
    bench.provider(grace=10).reap(spec.burst_id)
    wait_until(lambda: not bench.pids(spec.burst_id), "their end")


@pytest.mark.parametrize("left", ["nothing", "directories", "empty directory"])
def test_half_made_it_is_listed_and_can_be_reaped(left: str, bench: Bench) -> None:
    spec = bench.spec()
    place = bench.home.burst(spec.burst_id)
    if left != "nothing":
        bench.home.open()
        place.path.mkdir(0o700)
    if left == "directories":
        place.make(spec, "")
        (place.path / "spec.json").unlink()
    provider = bench.provider()
    phases = [status.phase for status in provider.observe()]
    assert phases == ([] if left == "nothing" else [Phase.PENDING])
    with pytest.raises(NotFound):
        provider.reap(spec.burst_id)
    assert not place.exists()


@pytest.mark.parametrize("lost", ["born", "spec.json", "everything"])
def test_a_follower_is_found_by_its_tags_whatever_is_lost_on_disk(
    lost: str, bench: Bench
) -> None:
    spec = bench.spec()
    bench.provider().provision(spec)
    place = bench.home.burst(spec.burst_id)
    before = bench.pids(spec.burst_id)
    if lost == "everything":
        shutil.rmtree(bench.home.path)
    for path in place.path.rglob(lost):
        path.unlink()

    provider = bench.provider()
    status = bench.status(provider)
    assert [f.phase for f in status.followers] == [Phase.RUNNING] * 2
    provider.provision(spec)
    assert bench.pids(spec.burst_id) == before
    assert bench.status(provider).phase is Phase.RUNNING
    bench.reap_all(provider, spec.burst_id)
    assert bench.pids(spec.burst_id) == set()


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
def test_a_recycled_pid_is_neither_listed_nor_touched(
    change: str, bench: Bench
) -> None:
    spec = bench.spec()
    bench.home.open()
    place = bench.home.burst(spec.burst_id)
    place.make(spec, "")
    follower = place.follower(spec.hosts[0])
    with bystander() as other:
        identity = identity_of(other.pid)
        follower.record(
            msgspec.structs.replace(identity, start=identity.start - 1)
            if change == "start"
            else msgspec.structs.replace(identity, boot="another")
        )
        provider = bench.provider(grace=0)
        assert bench.status(provider).followers[0].phase is Phase.FAILED
        assert bench.status(provider).followers[0].why == "is gone: its log is empty"
        with pytest.raises(NotFound):
            provider.reap(spec.burst_id)


def test_who_looks_at_a_follower_is_not_a_part_of_it(bench: Bench) -> None:
    spec = bench.spec()
    provider = bench.provider(grace=0)
    provider.provision(spec)
    socket = bench.home.burst(spec.burst_id).follower(spec.hosts[0]).path / "local"
    with bystander(FLUX_URI=f"local://{socket}"):
        bench.reap_all(provider, spec.burst_id)


def test_another_owners_or_providers_process_is_not_ours(bench: Bench) -> None:
    for changed in ("BURST_OWNER", "BURST_PROVIDER"):
        tags = {"BURST_OWNER": bench.owner, "BURST_PROVIDER": "here"}
        tags |= {"BURST_ID": "burst-0-1", "BURST_HOST": "a", changed: "other"}
        with bystander(**tags):
            assert bench.provider().observe() == []


@pytest.mark.parametrize("tags", [{"BURST_ID": "../x"}, {"BURST_HOST": ".."}, {}])
def test_tags_that_name_no_burst_are_ignored(
    tags: dict[str, str], bench: Bench
) -> None:
    mine = {"BURST_OWNER": bench.owner, "BURST_PROVIDER": "here"}
    with bystander(**mine, **tags):
        assert bench.provider().observe() == []


def test_a_host_may_have_a_domain(bench: Bench) -> None:
    tags = {"BURST_OWNER": bench.owner, "BURST_PROVIDER": "here"}
    tags |= {"BURST_ID": "burst-0-1", "BURST_HOST": "n0.example"}
    with bystander(**tags):
        (follower,) = bench.status(bench.provider()).followers
        assert (follower.host, follower.phase) == ("n0.example", Phase.RUNNING)


@pytest.mark.parametrize("burst_id", ["../..", "", "a/b"])
def test_what_is_no_burst_id_is_not_found(burst_id: str, bench: Bench) -> None:
    with pytest.raises(NotFound):
        bench.provider().reap(BurstId(burst_id))


def test_nothing_is_killed_by_what_others_could_have_written(bench: Bench) -> None:
    provider, spec = bench.provider(grace=0), bench.spec()
    provider.provision(spec)
    bench.home.path.chmod(0o777)
    for call in (provider.observe, lambda: provider.reap(spec.burst_id)):
        with pytest.raises(Refused, match="others may write"):
            call()
    assert bench.pids(spec.burst_id)
    bench.home.path.chmod(0o700)


JOB = "env -i FLUX_URI=local://$PWD/local PATH=$PATH sleep 1000"


@pytest.mark.parametrize(
    "job",
    [
        f"{JOB} & {SLEEP}",
        f"setsid sleep 1000 & {SLEEP}",
    ],
    ids=["as Flux starts jobs", "in a session of its own"],
)
def test_jobs_that_outlive_their_broker_end_with_the_burst(
    job: str, bench: Bench
) -> None:
    bench.script = job
    provider, spec = bench.provider(), bench.spec(nodes=1)
    provider.provision(spec)
    identity = bench.home.burst(spec.burst_id).follower(spec.hosts[0]).identity()
    assert identity
    wait_until(lambda: len(_sleepers(identity, spec)) == 2, "broker and job")
    os.kill(identity.pid, signal.SIGKILL)
    wait_until(lambda: len(_sleepers(identity, spec)) == 1, "the broker's end")
    assert bench.status(provider).phase is Phase.FAILED
    bench.reap_all(provider, spec.burst_id)
    assert not _sleepers(identity, spec)


def _sleepers(identity: ProcessIdentity, spec: BurstSpec) -> set[int]:
    return {
        process.pid
        for process in scan().values()
        if process.session == identity.pid
        or process.environ.get("BURST_ID") == spec.burst_id
    }


def test_what_runs_in_a_living_followers_session_is_killed_with_it(
    bench: Bench,
) -> None:
    bench.script = f"trap '' TERM; env -i PATH=$PATH sleep 1000 & {STUBBORN}"
    provider, spec = bench.provider(grace=0), bench.spec(nodes=1)
    provider.provision(spec)
    wait_said(bench, spec, "ready")
    identity = bench.home.burst(spec.burst_id).follower(spec.hosts[0]).identity()
    assert identity
    bench.reap_all(provider, spec.burst_id)
    assert not _sleepers(identity, spec)


def test_while_a_broker_lives_its_jobs_are_its_own_to_end(bench: Bench) -> None:
    bench.script = (
        "setsid sh -c \"trap 'echo job was told' TERM; while :; do sleep 0.05; done\" &"
        + STUBBORN
    )
    provider, spec = bench.provider(), bench.spec(nodes=1)
    provider.provision(spec)
    wait_said(bench, spec, "ready")
    wait_until(lambda: len(bench.pids(spec.burst_id)) >= 3, "the job")
    provider.reap(spec.burst_id)
    wait_said(bench, spec, "asked")
    wait_ticks(bench, spec)
    assert "told" not in bench.logs(spec)[0]


def test_what_lost_its_directory_leaves_no_zombie_either(bench: Bench) -> None:
    provider, spec = bench.provider(), bench.spec()
    provider.provision(spec)
    pids = bench.pids(spec.burst_id)
    shutil.rmtree(bench.home.path)
    bench.reap_all(provider, spec.burst_id)
    assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_a_gateway_is_asked_to_end_after_those_behind_it(bench: Bench) -> None:
    bench.script = f"echo ready; {SLEEP}"
    provider, spec = bench.provider(), _behind_a_gateway(bench.spec(nodes=3))
    provider.provision(spec)
    wait_said(bench, spec, "ready")
    provider.reap(spec.burst_id)
    wait_until(lambda: len(bench.pids(spec.burst_id)) == 1, "the others' end")
    (last,) = bench.pids(spec.burst_id)
    assert scan()[last].environ["BURST_HOST"] == spec.hosts[0]
    bench.reap_all(provider, spec.burst_id)


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
