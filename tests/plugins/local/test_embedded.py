# SPDX-License-Identifier: MIT
"""What followers say that an embedded lead turns down.

That they join and leave is in `tests/contract/test_provider_local_embedded.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import msgspec
import pytest
from burst_local import LocalProvider

from burst.lead import Lead
from burst.model.ranks import parse_hostlist
from burst.provider import BurstSpec, Phase
from burst.testing import example_spec
from tests.embedded_instance import embedded_instance
from tests.plugins.local.harness import LocalHarness
from tests.support.waiting import wait_until


@pytest.fixture
def lead() -> Iterator[Lead]:
    with embedded_instance() as instance, closing(instance.lead()) as lead:
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
