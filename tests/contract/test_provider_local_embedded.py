# SPDX-License-Identifier: MIT
"""What embedded followers are given, that they join, and what is left of them.

The rest of the contract has any program as follower: `test_provider_local.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import closing

import msgspec
import pytest
from burst_local.launch import follower_command

from burst.lead import Lead
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec
from burst.testing import example_spec
from burst.testing.contract_traces import TraceChecks
from burst.testing.fixtures import MakeSpec
from tests.contract.local_contract import WithLocalProvider
from tests.embedded_instance import embedded_instance


@pytest.fixture(scope="module")
def lead() -> Iterator[Lead]:
    with embedded_instance() as instance, closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        yield lead


@pytest.fixture(scope="module")
def identity(lead: Lead) -> LeadIdentity:
    return lead.identity()


class TestLocalProviderOnTheEmbeddedLead(WithLocalProvider, TraceChecks):
    command = staticmethod(follower_command("/no/flux"))
    ends_leases = False  # a lease is the provider's, whatever its followers are

    @pytest.fixture
    def make_spec(self, identity: LeadIdentity) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            lead = msgspec.structs.replace(identity, owner=owner)
            return example_spec(lead, number, "local")

        return make

    @pytest.fixture
    def online(self, lead: Lead) -> Callable[[], AbstractSet[int]] | None:
        return lambda: lead.observe().online
