# SPDX-License-Identifier: MIT
"""VmProvider keeps the contract on EC2 and Azure over the wire; its followers join.

EC2 is moto's server, Azure a fake of its API, and the VMs are processes of this host,
which run what their user data says.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from burst_vm.user_data import HOME

from burst.lead import Lead
from burst.provider import BurstSpec, Provider
from burst.testing import Backend, ProviderContract
from burst.testing.backend import Moment
from burst.testing.contract import Count, MakeProvider
from tests.plugins.vm.fake_azure import FakeAzure
from tests.plugins.vm.hypervisor import Hypervisor, booting
from tests.support.contract_lead import LeadBackend, WithLead
from tests.support.own_name import OWN_NAME
from tests.support.ports import free_port
from tests.support.waiting import wait_until

pytestmark = pytest.mark.programs


class CloudBackend(LeadBackend):
    def __init__(self, hosts: Hypervisor, lead: Lead, make: MakeProvider) -> None:
        super().__init__(lead)
        self.hosts, self.make = hosts, make
        self.cloud = hosts.cloud

    def unreachable(self) -> AbstractContextManager[object]:
        return self.cloud.unreachable()

    @contextmanager
    def stalled(self) -> Iterator[None]:
        self.hosts.paused = True
        yield
        self.hosts.paused = False

    def full(self, owner: str) -> Provider:
        self.cloud.full = True
        return self.make(owner)

    def crashing(self, owner: str, when: Moment) -> Provider:
        self.cloud.cut = when
        return self.make(owner)

    def named(self, owner: str, name: str) -> Provider:
        return self.cloud.provider(owner, name, user=OWN_NAME, port=free_port())

    def kill(self, spec: BurstSpec, host: str) -> None:
        found, _ = self.hosts.of(spec.burst_id, host)
        found.terminate()

    def end(self, spec: BurstSpec, host: str) -> None:
        rank = spec.ranks[spec.hosts.index(host)]
        wait_until(lambda: rank in self.lead.observe().online, f"{host} to join")
        _, vm = self.hosts.of(spec.burst_id, host)
        vm.signal(signal.SIGTERM)

    def public(self, spec: BurstSpec) -> str:
        found = [self.hosts.of(spec.burst_id, host)[1] for host in spec.hosts]
        return "\n".join(
            [*(vm.command_lines() for vm in found), *(vm.user_data for vm in found)]
        )

    def given(self, spec: BurstSpec) -> str:
        _, vm = self.hosts.of(spec.burst_id, spec.hosts[0])
        path = vm.place / HOME.strip("/") / "broker.toml"
        wait_until(path.exists, "the VM to have its files")
        return path.read_text()

    def left(self, spec: BurstSpec) -> Sequence[str]:
        notes = (self.cloud.path / "notes").rglob("*")
        found = [str(path) for path in notes if spec.burst_id in str(path)]
        return [*found, *(vm.id for vm in self.cloud.vms(burst=spec.burst_id))]


class VmContract(WithLead, ProviderContract):
    pause = 0.1
    ends_leases = True
    lease = 12.0

    @pytest.fixture
    def make_provider(self, hosts: Hypervisor) -> MakeProvider:
        ports: dict[str, int] = {}

        def make(owner: str, **changes: Any) -> Provider:
            # Another daemon listens at another port, one that was restarted does not.
            port = ports.setdefault(owner, free_port())
            return hosts.cloud.provider(owner, user=OWN_NAME, port=port, **changes)

        return make

    @pytest.fixture
    def backend(
        self, hosts: Hypervisor, lead: Lead, make_provider: MakeProvider
    ) -> Backend:
        return CloudBackend(hosts, lead, make_provider)

    @pytest.fixture
    def misconfigured(self, hosts: Hypervisor) -> Callable[[], Provider]:
        return lambda: hosts.cloud.provider("owner-a", credentials="/nowhere")

    @pytest.fixture
    def count(self, hosts: Hypervisor) -> Count | None:
        return lambda spec: len(hosts.cloud.vms(burst=spec.burst_id, owner=spec.owner))


class TestVmProvider(VmContract):
    """On EC2."""


class TestAzure(VmContract):
    # A VM that has powered itself off at the end is off, and there: test_azure.py.
    ends_leases = False

    @pytest.fixture
    def hosts(self) -> Iterator[Hypervisor]:
        with booting(FakeAzure) as hosts:
            yield hosts
        assert isinstance(hosts.cloud, FakeAzure)
        assert hosts.cloud.orphans() == []
