# SPDX-License-Identifier: MIT
"""Followers of the local provider join a real lead, run its jobs, and leave."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import msgspec
import pytest
from burst_local.provider import LocalProvider

from burst.lead_setup.lead_plan import PlannedSlot
from burst.model.shape import Shape
from burst.provider import BurstSpec
from burst.testing import example_spec
from tests.plugins.local.harness import LocalHarness
from tests.support.fluxlead import FluxLead, flux_lead, needs_flux
from tests.support.ports import free_port
from tests.support.waiting import HANG_S, wait_until

pytestmark = [pytest.mark.flux, needs_flux]

SLOT = PlannedSlot(hosts="burst-0-[0-2]", shape=Shape(2))


@contextmanager
def burst_of(
    lead: FluxLead, local: LocalHarness, nodes: int
) -> Iterator[tuple[LocalProvider, BurstSpec]]:
    """Provision a burst; the local reaps it."""
    spec = example_spec(lead.identity(local.owner), 0, "local", nodes)
    # That they leave in order is what is tested, however long that takes.
    provider = LocalProvider("here", local.settings, local.owner, grace=HANG_S)
    provider.provision(spec)
    yield provider, spec


def test_a_job_cannot_read_our_environment_from_its_own(
    local: LocalHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CLOUD_PASSWORD", "hush")
    with flux_lead(SLOT) as lead, burst_of(lead, local, nodes=1):
        monkeypatch.delenv("CLOUD_PASSWORD")
        output = lead.run("--requires=host:burst-0-0", "env")
        assert not [word for word in output if "hush" in word]


def test_behind_a_gateway_they_join_and_leave_too(local: LocalHarness) -> None:
    slot = msgspec.structs.replace(SLOT, gateway=f"tcp://127.0.0.1:{free_port()}")
    with (
        flux_lead(slot, gateways=True) as lead,
        burst_of(lead, local, nodes=3) as (provider, spec),
    ):
        before = len(lead.log())
        output = lead.run("-N4", "flux", "getattr", "tbon.level")
        assert sorted(output) == ["0", "1", "2", "2"]
        local.reap_all(provider, spec.burst_id)
        wait_until(lambda: lead.online() == {"lead-0"}, "them to leave")
        assert "failed" not in lead.log()[before:], "they said goodbye"
