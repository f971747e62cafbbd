# SPDX-License-Identifier: MIT
"""LocalProvider keeps the contract with embedded followers."""

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
from burst.testing.contract import MakeSpec
from tests.contract.local_contract import LocalContract
from tests.embedded_instance import embedded_instance


@pytest.fixture(scope="module")
def lead() -> Iterator[Lead]:
    with embedded_instance() as instance, closing(instance.lead()) as lead:
        lead.listen(lambda: None)
        yield lead


@pytest.fixture(scope="module")
def identity(lead: Lead) -> LeadIdentity:
    return lead.identity()


class TestLocalProviderOnTheEmbeddedLead(LocalContract):
    command = staticmethod(follower_command("/no/flux"))

    @pytest.fixture
    def make_spec(self, identity: LeadIdentity) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            lead = msgspec.structs.replace(identity, owner=owner)
            return example_spec(lead, number, "local")

        return make

    @pytest.fixture
    def online(self, lead: Lead) -> Callable[[], AbstractSet[int]] | None:
        return lambda: lead.observe().online
