# SPDX-License-Identifier: MIT
"""An account, and a burst in its cluster that is asked for as by a daemon."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from burst_eks.groups import name_of
from burst_eks.provider import EksProvider

from burst.errors import NotFound, Transient
from burst.kits.pods import Tags
from burst.provider import BurstSpec, BurstStatus, Provider
from burst.testing import example_lead, example_spec
from tests.plugins.eks.moto_eks import NOW, EksServer, MotoEks

TAGS = Tags("owner-a", "eks")


class Account(MotoEks):
    """One cluster, and the spec of a burst of two nodes."""

    def __init__(self, server: EksServer, directory: Path) -> None:
        super().__init__(server)
        self.spec = example_spec(example_lead(directory, "owner-a"), 0, "nodes")

    def lease(self, seconds: float) -> None:
        """Have the burst end so many seconds from now."""
        self.spec = msgspec.structs.replace(self.spec, lease_end=NOW + seconds)

    def begun(self, **changes: Any) -> EksProvider:
        """Provision the burst; return the provider that did."""
        provider = self.provider(**changes)
        provision(provider, self.spec)
        return provider

    @property
    def name(self) -> str:
        """That of the burst's node group."""
        return name_of(TAGS, self.spec.burst_id)

    @property
    def group(self) -> Any:
        """Return moto's node group of the burst."""
        return self.groups[self.name]

    def reap(self, provider: Provider) -> int:
        """Reap until NotFound; return how many calls that took."""
        for number in range(20):
            try:
                provider.reap(self.spec.burst_id)
            except NotFound:
                return number
        raise AssertionError("not gone")


def provision(provider: Provider, spec: BurstSpec) -> list[str]:
    """Provision until it is through; return what was said on the way."""
    said: list[str] = []
    for _ in range(20):
        try:
            provider.provision(spec)
        except Transient as error:
            said.append(str(error))
        else:
            return said
    raise AssertionError(f"not through: {said}")


def status(provider: Provider) -> BurstStatus:
    (found,) = provider.observe()
    return found
