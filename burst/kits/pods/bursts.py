# SPDX-License-Identifier: MIT
"""A provider whose followers are pods, but for the cluster that they are in."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from burst.kits.kube.manifests import read_manifests
from burst.kits.pods.names import Tags
from burst.kits.pods.render import render
from burst.kits.pods.settings import PodSettings, offers
from burst.model.burst import BurstId
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, Offer


class Bursts(Protocol):
    """The bursts of one provider in a cluster that is there, as `PodBursts` is."""

    def provision(self, spec: BurstSpec) -> None:
        """See Provider, as of the next two."""
        ...

    def observe(self) -> Sequence[BurstStatus]:
        """Return every burst of which there is any object."""
        ...

    def reap(self, burst_id: BurstId) -> None:
        """Delete the objects; NotFound once there is none."""
        ...

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """See Examined."""
        ...

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None]
    ) -> Sequence[Finding]:
        """See Probed."""
        ...


class PodProvider:
    """All of a provider for one cluster; a plug-in's adds its settings and `bursts`."""

    def __init__(self, name: str, settings: PodSettings, owner: str) -> None:
        self.tags = Tags(owner, name)
        self._offers = offers(settings)

    def bursts(self) -> Bursts:
        """Return the bursts in the cluster. Asked for by each call; may raise."""
        raise NotImplementedError

    def offers(self) -> Sequence[Offer]:
        """Return the offers of the settings."""
        return self._offers

    def provision(self, spec: BurstSpec) -> None:
        """Make what is missing of the burst's objects."""
        self.bursts().provision(spec)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts of which there is any object."""
        return self.bursts().observe()

    def reap(self, burst_id: BurstId) -> None:
        """Delete the burst's objects; NotFound once there are none."""
        self.bursts().reap(burst_id)

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Look at the cluster, the rights in it, the image and the lead's address."""
        return self.bursts().examine(lead)

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None]
    ) -> Sequence[Finding]:
        """Have a pod try whether it reaches the lead's address."""
        return self.bursts().probe(lead, tell)


def check_burst(
    spec: BurstSpec,
    settings: PodSettings,
    tags: Tags,
    clock: Callable[[], float] = time.time,
) -> None:
    """Raise Refused if the burst could not be made in whatever cluster.

    For before a cluster is made, which costs time, or money.
    """
    render(spec, settings, tags, clock())
    if settings.operator_yaml:
        read_manifests(Path(settings.operator_yaml))
