# SPDX-License-Identifier: MIT
"""What provision starts and with what, and what observe says of it."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from burst_local.launch import follower_command, limit_time
from burst_local.provider import LocalProvider

from burst.errors import InsufficientCapacity, Refused, Transient
from burst.model.shape import Shape
from burst.provider import BurstSpec, Phase
from tests.plugins.local.harness import SLEEP, LocalHarness
from tests.support.waiting import wait_until


def test_by_default_a_follower_has_the_cores_we_may_use(local: LocalHarness) -> None:
    (offer,) = local.provider(cores=0).offers()
    assert offer.shape == Shape(len(os.sched_getaffinity(0)))


def test_followers_get_no_more_of_our_environment_than_they_need(
    local: LocalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_PASSWORD", "hush")
    monkeypatch.setenv("FLUX_URI", "local:///the/leads")
    monkeypatch.setenv("SHELL", "/bin/bash")
    local.script = f"env; echo end; {SLEEP}"
    provider = local.provider(environment={"SITE": "here", "BURST_ID": "other"})
    spec = local.spec(nodes=1)
    provider.provision(spec)
    wait_until(lambda: "end" in local.logs(spec)[0], "its environment")
    lines = local.logs(spec)[0].splitlines()
    assert f"PATH={os.environ['PATH']}" in lines
    assert "SITE=here" in lines
    assert "SHELL=/bin/sh" in lines
    assert {
        f"BURST_OWNER={local.owner}",
        "BURST_PROVIDER=here",
        f"BURST_ID={spec.burst_id}",
        "BURST_HOST=burst-0-0",
    } <= set(lines)
    assert not [line for line in lines if "hush" in line or line.startswith("FLUX")]


def test_before_anything_runs_a_follower_is_pending(local: LocalHarness) -> None:
    spec = local.spec()
    local.home.open()
    local.home.burst(spec.burst_id).make(spec, "")
    status = local.status(local.provider())
    assert status.phase is Phase.PENDING
    assert status.why == "burst-0-0 is not started yet"
    local.provider().provision(spec)
    assert local.status(local.provider()).phase is Phase.RUNNING


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("echo one; echo two >&2; exit 3", "exited with status 3: one / two"),
        ("exit 0", "exited with status 0: its log is empty"),
        ("kill -9 $$", "was killed by signal 9: its log is empty"),
        ("exit 124", "exited with status 124, as at the end of its lease"),
    ],
)
def test_a_follower_that_ends_is_failed_and_its_last_words_are_told(
    script: str, why: str, local: LocalHarness
) -> None:
    local.script = script
    provider = local.provider()
    provider.provision(local.spec())
    wait_until(lambda: local.all_failed(provider), "their end")
    status = local.status(provider)
    assert status.phase is Phase.FAILED
    assert status.why.startswith(f"burst-0-0 {why}")


def test_a_follower_gets_time_to_join_before_it_is_said_why_it_does_not(
    local: LocalHarness,
) -> None:
    local.script = (
        "echo '<7>overlay.debug[1]: connecting to tcp://lead:8050'; exec sleep 600"
    )
    provider = local.provider()
    begin = time.monotonic()
    provider.provision(local.spec())
    place = local.home.burst(local.spec().burst_id).follower("burst-0-0")
    wait_until(lambda: "connecting" in place.log_end(), "the log")
    said = local.status(provider).why
    assert not said or time.monotonic() - begin > 3.9
    wait_until(
        lambda: "it gets no answer from tcp://lead" in local.status(provider).why,
        "the reason to be told",
    )
    assert time.monotonic() - begin > 3.9


def test_provisioned_again_only_what_has_ended_is_started(local: LocalHarness) -> None:
    local.script = f"echo here I am; {SLEEP}"
    provider, spec = local.begun()
    place = local.home.burst(spec.burst_id)
    first, second = (place.follower(host).identity() for host in spec.hosts)
    assert first
    wait_until(lambda: all(local.logs(spec)), "the first words of both")
    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: local.status(provider).phase is Phase.FAILED, "its death")
    assert [f.phase for f in local.status(provider).followers] == [
        Phase.FAILED,
        Phase.RUNNING,
    ]
    provider.provision(spec)
    assert local.status(provider).phase is Phase.RUNNING
    again = [place.follower(host).identity() for host in spec.hosts]
    assert again[0] != first
    assert again[1] == second
    said = ["here I am\n" * 2, "here I am\n"]
    wait_until(lambda: local.logs(spec) == said, "the second's words below the first's")


def test_after_a_crash_before_a_second_start_was_recorded_there_is_no_third(
    local: LocalHarness,
) -> None:
    provider, spec = local.begun(nodes=1)
    follower = local.place(spec)
    first = follower.identity()
    assert first
    os.kill(first.pid, signal.SIGKILL)
    wait_until(lambda: local.status(provider).phase is Phase.FAILED, "its death")
    provider.provision(spec)
    follower.unrecord()
    (second,) = local.pids(spec.burst_id)
    restarted = local.provider()
    assert local.status(restarted).phase is Phase.RUNNING
    restarted.provision(spec)
    assert local.pids(spec.burst_id) == {second}


def test_the_host_carries_so_many_followers_and_no_more(local: LocalHarness) -> None:
    provider = local.provider(max_nodes=3)
    provider.provision(local.spec(0, nodes=2))
    with pytest.raises(InsufficientCapacity, match="are needed, and 1 of 3 are free"):
        provider.provision(local.spec(1, nodes=2))
    provider.provision(local.spec(1, nodes=1))
    provider.provision(local.spec(0, nodes=2))
    assert len(provider.observe()) == 2


def _no_endpoint(spec: BurstSpec) -> BurstSpec:
    lead = msgspec.structs.replace(spec.lead, endpoint="")
    return msgspec.structs.replace(spec, lead=lead)


def _open_certificate(spec: BurstSpec) -> BurstSpec:
    Path(spec.lead.certificate).chmod(0o644)
    return spec


def _other_ranks(spec: BurstSpec) -> BurstSpec:
    return msgspec.structs.replace(spec, ranks=(2, 1))


@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (_no_endpoint, "set address and port under"),
        (_open_certificate, "open to group or others"),
        (_other_ranks, "burst-0-0 is not at rank 2"),
        (lambda s: msgspec.structs.replace(s, burst_id="../x"), "be a directory name"),
        (lambda s: msgspec.structs.replace(s, shape=Shape(9)), "with 9 cores per node"),
        (lambda s: msgspec.structs.replace(s, shape=Shape(1, 1)), "set cores and gpus"),
        (lambda s: msgspec.structs.replace(s, offer="gpu"), "no offer 'gpu'"),
    ],
)
def test_what_could_not_join_is_refused_before_anything_is_made(
    damage: Any, what: str, local: LocalHarness
) -> None:
    with pytest.raises(Refused, match=what):
        local.provider().provision(damage(local.spec()))
    assert local.provider().observe() == []
    assert not local.home.path.exists()


def test_other_hosts_under_a_known_id_are_refused(local: LocalHarness) -> None:
    provider = local.provider()
    provider.provision(local.spec(nodes=2))
    with pytest.raises(Refused, match="exists with other hosts; reap it first"):
        provider.provision(local.spec(nodes=3))


def test_a_program_that_cannot_be_run_is_refused(local: LocalHarness) -> None:
    spec = local.spec()
    for program in ("/no/such/program", str(local.directory)):
        provider = LocalProvider(
            "here", local.settings, local.owner, command=lambda *_, p=program: [p]
        )
        with pytest.raises(Refused, match=f"{program} cannot be run: .*set flux"):
            provider.provision(spec)


def test_a_host_at_its_limit_is_transient(local: LocalHarness) -> None:
    provider = LocalProvider(
        "here", local.settings, local.owner, command=lambda *_: ["x" * 300]
    )
    with pytest.raises(Transient, match="cannot be run now: File name too long"):
        provider.provision(local.spec())


def test_where_flux_is_missing_that_is_said(local: LocalHarness) -> None:
    spec = local.spec()
    with pytest.raises(Refused, match="no program '/no/flux'; install Flux, or set"):
        follower_command("/no/flux")(spec, "burst-0-0", Path("/c"), Path("/run"))


def test_a_directory_too_long_for_a_socket_is_refused(local: LocalHarness) -> None:
    deep = str(local.directory / ("x" * 80))
    settings = msgspec.structs.replace(local.settings, dir=deep, flux="/bin/sh")
    with pytest.raises(Refused, match=r"unix socket.*shorter path"):
        LocalProvider("here", settings, local.owner).provision(local.spec())
    assert not Path(deep).exists()


def test_by_default_followers_are_in_a_short_directory(local: LocalHarness) -> None:
    settings = msgspec.structs.replace(local.settings, dir="")
    provider = LocalProvider(
        "here", settings, local.owner, command=lambda *_: ["sleep", "1000"]
    )
    spec = local.spec()
    provider.provision(spec)
    try:
        place = Path(f"/tmp/burst-{os.geteuid()}/{local.owner}.here/{spec.burst_id}")
        assert place.is_dir()
    finally:
        local.reap_all(provider, spec.burst_id)
    assert not place.parent.exists()


def test_a_lease_that_nothing_could_end_is_refused(
    local: LocalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(local.directory))
    with pytest.raises(Refused, match="no program 'timeout'; install GNU"):
        local.provider().provision(local.spec(lease_end=1.0))
    assert local.provider().observe() == []


def test_a_lease_is_not_cut_by_a_part_of_a_second() -> None:
    ends = time.time() + 1000.4
    given = float(limit_time(["follower"], ends)[2])
    assert given > ends - time.time() - 0.01
