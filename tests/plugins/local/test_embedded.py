# SPDX-License-Identifier: MIT
"""Followers of the local provider join an embedded lead, run its jobs, and leave."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import closing

import msgspec
import pytest
from burst_local import LocalProvider
from burst_local.processes import scan, send

from burst.lead import Lead
from burst.model.ranks import parse_hostlist
from burst.provider import BurstSpec, Phase
from burst.testing import example_spec
from tests.contract.instance import SLEEP
from tests.embedded_instance import EmbeddedInstance, embedded_instance
from tests.plugins.local.harness import LocalHarness
from tests.support.waiting import wait_until


@pytest.fixture
def instance() -> Iterator[EmbeddedInstance]:
    with embedded_instance() as instance:
        yield instance


@pytest.fixture
def lead(instance: EmbeddedInstance) -> Iterator[Lead]:
    with closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        yield lead


@pytest.fixture
def spec(lead: Lead, local: LocalHarness) -> BurstSpec:
    identity = msgspec.structs.replace(lead.identity(), owner=local.owner)
    return example_spec(identity, 0, "local", nodes=4)


@pytest.fixture
def provider(local: LocalHarness) -> LocalProvider:
    settings = msgspec.structs.replace(local.settings, gpus=1)
    return LocalProvider("here", settings, local.owner)


def test_followers_join_run_a_job_and_leave_no_trace(
    instance: EmbeddedInstance,
    lead: Lead,
    local: LocalHarness,
    spec: BurstSpec,
    provider: LocalProvider,
) -> None:
    provider.provision(spec)
    wait_until(lambda: lead.observe().online >= set(spec.ranks), "them to join")
    job = instance.submit(nodes=5, command=("sh", "-c", "echo $BURST_HOSTNAME"))
    assert sorted(instance.output(job).split()) == [*spec.hosts, "lead-0"]
    local.reap_all(provider, spec.burst_id)
    wait_until(lambda: lead.observe().online == {0}, "the lead to see them leave")
    assert not local.pids(spec.burst_id)
    assert not local.home.path.exists()


def test_a_killed_followers_jobs_end_with_the_burst(
    instance: EmbeddedInstance,
    lead: Lead,
    local: LocalHarness,
    spec: BurstSpec,
    provider: LocalProvider,
) -> None:
    provider.provision(spec)
    wait_until(lambda: lead.observe().online >= set(spec.ranks), "them to join")
    instance.submit(nodes=5, command=SLEEP)
    follower = local.home.burst(spec.burst_id).follower("burst-0-0")
    identity = follower.identity()
    assert identity

    def session() -> set[int]:
        return {p.pid for p in scan().values() if p.session == identity.pid}

    wait_until(lambda: len(session()) >= 2, "the task")
    send(signal.SIGKILL, [scan()[identity.pid]])
    killed = "burst-0-0 was killed by signal 9"
    wait_until(lambda: local.status(provider).why.startswith(killed), "the news")
    assert local.status(provider).phase is Phase.FAILED
    local.reap_all(provider, spec.burst_id)
    assert not session()


def test_what_a_follower_said_explains_why_it_ended(
    lead: Lead, local: LocalHarness, spec: BurstSpec, provider: LocalProvider
) -> None:
    first = spec.lead.bootstrap.hosts[0]
    order = ("lead-0", "burst-0-[0-3]", "lead-1", "burst-1-[0-3]")
    hosts = tuple(msgspec.structs.replace(first, host=names) for names in order)
    elsewhere = msgspec.structs.replace(
        spec.lead,
        hosts=tuple(host for names in order for host in parse_hostlist(names)),
        bootstrap=msgspec.structs.replace(spec.lead.bootstrap, hosts=hosts),
    )
    provider.provision(
        msgspec.structs.replace(spec, lead=elsewhere, ranks=(1, 2, 3, 4))
    )
    wait_until(lambda: local.status(provider).phase is Phase.FAILED, "their end")
    assert "mismatched config" in local.status(provider).why
    assert lead.observe().online == {0}
