# SPDX-License-Identifier: MIT
"""Local bursts that grow and shrink: processes, directories, crashes in between."""

from __future__ import annotations

import os
import signal

import msgspec
import pytest
from burst_local.processes import scan

from burst.errors import InsufficientCapacity, Refused, Transient
from burst.provider import BurstSpec, Phase
from tests.plugins.local.harness import STUBBORN, LocalHarness
from tests.support.waiting import wait_until


def part(spec: BurstSpec, nodes: int) -> BurstSpec:
    return msgspec.structs.replace(
        spec, hosts=spec.hosts[:nodes], ranks=spec.ranks[:nodes]
    )


def leaders(local: LocalHarness, spec: BurstSpec) -> set[int]:
    found = scan()
    pids = local.pids(spec.burst_id)
    return {pid for pid in pids if pid in found and found[pid].session == pid}


def in_session(leader: int) -> set[int]:
    """Return the processes of one follower, such as what its script has started."""
    return {pid for pid, process in scan().items() if process.session == leader}


def test_a_growth_does_not_start_again_what_ended(local: LocalHarness) -> None:
    provider, spec = local.provider(), local.spec(nodes=3)
    provider.provision(part(spec, 2))
    first = min(leaders(local, spec))
    os.kill(first, signal.SIGKILL)
    # One that ends shows no tags any more a moment before it has ended.
    wait_until(lambda: first not in scan(), "it to end")
    provider.resize(spec)
    provider.resize(spec)
    status = local.status(provider)
    phases = [follower.phase for follower in status.followers]
    assert phases == [Phase.FAILED, Phase.RUNNING, Phase.RUNNING]
    assert len(leaders(local, spec)) == 2


def test_what_stays_in_a_shrink_is_killed_after_the_grace(local: LocalHarness) -> None:
    local.script = STUBBORN
    provider, spec = local.ready()
    small = part(spec, 1)
    provider.resize(small)
    status = local.status(provider)
    assert status.phase is Phase.RUNNING
    assert [f.phase for f in status.followers] == [Phase.RUNNING, Phase.ENDING]
    with pytest.raises(Transient, match="and not ended yet"):
        provider.resize(spec)
    local.now += 9.9
    provider.resize(small)
    assert len(leaders(local, spec)) == 2
    local.now += 0.2
    identity = local.place(spec, 1).identity()
    assert identity
    provider.resize(small)
    # With its script's last child, which is left to end by itself. One that ends shows
    # no tags any more a moment before it has ended.
    wait_until(lambda: not in_session(identity.pid), "the second to end")
    # Its directory is left until the next call, and is listed as it.
    assert len(local.status(provider).followers) == 2
    provider.resize(small)
    assert len(local.status(provider).followers) == 1
    assert not local.place(spec, 1).path.exists()


def test_it_grows_within_the_host_only(local: LocalHarness) -> None:
    provider, spec = local.provider(max_nodes=3), local.spec(nodes=3)
    other = local.spec(number=1, nodes=1)
    provider.provision(part(spec, 1))
    provider.provision(other)
    with pytest.raises(InsufficientCapacity, match="3 followers are needed, and 2"):
        provider.resize(spec)
    provider.resize(part(spec, 2))
    assert len(leaders(local, spec)) == 2


def test_what_cannot_be_started_is_refused_before_anything_is_written(
    local: LocalHarness,
) -> None:
    provider, spec = local.provider(), local.spec()
    provider.provision(part(spec, 1))
    lead = msgspec.structs.replace(spec.lead, certificate="/nowhere/burst.cert")
    with pytest.raises(Refused):
        provider.resize(msgspec.structs.replace(spec, lead=lead))
    assert len(local.status(provider).followers) == 1
    # What it has too much can be ended without the certificate.
    provider.resize(part(msgspec.structs.replace(spec, lead=lead), 1))
