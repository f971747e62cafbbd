# SPDX-License-Identifier: MIT
"""EKS whose node groups AWS has, and whose pods are processes of this host.

Daemons of tests find it as any third party's provider. It asks the AWS that
AWS_ENDPOINT_URL names.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec
from burst_eks.cloud import EksCloud
from burst_eks.provider import EksDependencies, EksProvider
from burst_eks.settings import EksSettings
from burst_local.provider import LocalProvider, LocalSettings

from burst.config import convert
from burst.kits.kube import Cluster
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.provider import BurstSpec

TYPE = "ekshere"
WHERE = f"{__name__}:EksHere"


class HereSettings(EksSettings, frozen=True, kw_only=True):
    """Those of EKS, and the table of the processes, of type `local`."""

    processes: Mapping[str, Any]


class Processes(LocalProvider):
    """The pods: a process for each, whose offer has a name of its own."""

    cluster: Cluster

    def provision(self, spec: BurstSpec) -> None:
        super().provision(msgspec.structs.replace(spec, offer="local"))

    def expect(self, burst_id: BurstId, *, anew: bool = False) -> None:
        """Nothing is late here."""

    def reap(self, burst_id: BurstId, *, force: bool = False) -> None:
        del force
        super().reap(burst_id)

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        """Drop it: processes have no events."""


class EksHere(EksProvider):
    """EKS with such pods."""

    Settings: ClassVar[type[EksSettings]] = HereSettings

    def __init__(self, name: str, settings: HereSettings, owner: str) -> None:
        table = {**settings.processes, "flux": settings.flux}
        pods = Processes(name, convert(LocalSettings, table, name), owner)

        def reach(cluster: Cluster, *_: object) -> Any:
            pods.cluster = cluster
            return pods

        given = EksDependencies(EksCloud(settings), reach)
        super().__init__(name, settings, owner, given)
