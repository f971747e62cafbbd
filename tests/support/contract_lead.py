# SPDX-License-Identifier: MIT
"""What contract tests of several providers share: a lead that their followers join.

It is an embedded one, so that no Flux is needed.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from burst.lead import Lead
from burst.provider import BurstSpec
from burst.testing import Backend, example_spec
from burst.testing.fixtures import ContractFixtures, MakeProvider, MakeSpec
from tests.embedded_instance import embedded_instance
from tests.support.waiting import HANG_S


class WithLead(ContractFixtures):
    """Gives specs of bursts whose followers join `lead`; their nodes have no GPUs."""

    offer = "nodes"
    """The provider's, of which the bursts are."""
    patience = prompt = HANG_S

    @pytest.fixture(scope="class")
    @classmethod
    def lead(cls) -> Iterator[Lead]:
        with embedded_instance() as instance, closing(instance.lead()) as lead:
            lead.listen(lambda: None)
            yield lead

    @pytest.fixture
    def make_spec(self, lead: Lead) -> MakeSpec:
        def make(owner: str, number: int) -> BurstSpec:
            identity = msgspec.structs.replace(lead.identity(), owner=owner)
            spec = example_spec(identity, number, self.offer)
            no_gpus = msgspec.structs.replace(spec.shape, gpus=0)
            return msgspec.structs.replace(spec, shape=no_gpus)

        return make

    @pytest.fixture
    def make_interrupted(self, backend: Backend) -> MakeProvider:
        return lambda owner: backend.crashing(owner, "before")


class LeadBackend(Backend):
    """Sees at the lead which followers have joined."""

    def __init__(self, lead: Lead) -> None:
        self.lead = lead

    def online(self, spec: BurstSpec) -> AbstractSet[int]:
        return self.lead.observe().online


def files_of(spec: BurstSpec, place: Path) -> list[str]:
    """Return files below a directory, and rundirs, that are named for a burst."""
    found = [path for path in place.rglob("*") if spec.burst_id in str(path)]
    return [*map(str, found), *map(str, Path("/tmp").glob(f"{spec.burst_id}-*"))]
