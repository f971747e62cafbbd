# SPDX-License-Identifier: MIT
"""The base class of providers whose followers are pods."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Protocol

from burst.kits.kube.manifests import read_manifests
from burst.kits.pods.lifecycle.resizer import can_resize
from burst.kits.pods.names import Tags
from burst.kits.pods.pod_offers import offers
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.render import render
from burst.kits.pods.template.storage import known_directories
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.provider import (
    BurstMode,
    BurstSpec,
    BurstStatus,
    Offer,
    OptionalMethod,
    OwnedBurst,
    Provider,
)


class Bursts(Protocol):
    """The bursts of one provider in a cluster that exists, such as `PodBursts`."""

    def provision(self, spec: BurstSpec) -> None:
        """See `burst.provider.Provider`."""
        ...

    def resize(self, spec: BurstSpec) -> None:
        """See `burst.provider.Provider`."""
        ...

    def observe(self) -> Sequence[BurstStatus]:
        """Return every burst that has an object."""
        ...

    def list_all(self) -> Sequence[OwnedBurst]:
        """See `burst.provider.Provider`."""
        ...

    def reap(self, burst_id: BurstId, *, force: bool = False) -> None:
        """Delete the objects. Raises NotFound once there are none."""
        ...

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        """See `burst.provider.Provider`."""
        ...

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """See `burst.provider.Provider`."""
        ...

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        """See `burst.provider.Provider`."""
        ...


class PodSettingsProvider(Provider):
    """What name and settings alone say of a provider whose followers are pods."""

    def __init__(self, name: str, settings: PodSettings, owner: str) -> None:
        self.tags = Tags(owner, name)
        self._can_resize = can_resize(settings)
        self._offers = offers(settings)
        self._directories = known_directories(settings)

    @classmethod
    def modes(cls, settings: PodSettings) -> tuple[BurstMode, ...]:
        """Return what bursts can be."""
        return settings.modes

    @classmethod
    def own_images(cls, settings: PodSettings) -> bool:
        """Return whether bursts may have other images."""
        return settings.own_images

    @classmethod
    def offer_names(cls, settings: PodSettings) -> Collection[str]:
        """Return those of the settings' tables."""
        return settings.offers

    def offers(self) -> Sequence[Offer]:
        """Return the offers of the settings' tables."""
        return self._offers

    def directories(self) -> Sequence[str]:
        """Return what followers have whatever is in their image."""
        return self._directories

    @abc.abstractmethod
    def delete(self, burst_id: BurstId, *, force: bool) -> None:
        """Do what `reap` does, or `force_reap`: the kubelets of pods may be dead."""

    def reap(self, burst_id: BurstId) -> None:
        """Delete all of the burst. Raises NotFound once nothing is left."""
        self.delete(burst_id, force=False)

    def force_reap(self, burst_id: BurstId) -> None:
        """As `reap`, but delete pods although their kubelet does not end them."""
        self.delete(burst_id, force=True)

    def has(self, method: OptionalMethod) -> bool:
        """Return whether it may be called; settings may rule `resize` out."""
        return super().has(method) and (method != "resize" or self._can_resize)


class PodProvider(PodSettingsProvider):
    """A provider for one cluster. A subclass adds `Settings` and `bursts`."""

    @abc.abstractmethod
    def bursts(self) -> Bursts:
        """Return the bursts in the cluster, such as a `PodBursts`.

        Each call of the provider calls it, so keep what it returns. It may raise what a
        provider may raise, such as Transient while the cluster is being made.
        """

    def provision(self, spec: BurstSpec) -> None:
        """Make what is missing of the burst's objects."""
        self.bursts().provision(spec)

    def resize(self, spec: BurstSpec) -> None:
        """Add pods to the burst, or delete the last ones."""
        self.bursts().resize(spec)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts that have an object."""
        return self.bursts().observe()

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners in the cluster's namespace."""
        return self.bursts().list_all()

    def delete(self, burst_id: BurstId, *, force: bool) -> None:
        """Delete the burst's objects. Raises NotFound once there are none."""
        self.bursts().reap(burst_id, force=force)

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        """Write an event of the burst's Job or MiniCluster."""
        self.bursts().record_event(burst_id, event, text)

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Look at the cluster, the rights in it, the image and the lead's address."""
        return self.bursts().examine(lead)

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        """Run a pod that tries to connect to the lead."""
        return self.bursts().probe(lead, tell, user)


def check_burst(
    spec: BurstSpec,
    settings: PodSettings,
    tags: Tags,
    clock: Callable[[], float] = time.time,
) -> None:
    """Raise Refused if the burst could not be made in any cluster.

    To be called before a cluster is made, which takes time or costs money.
    """
    render(spec, settings, tags, clock())
    if settings.operator_yaml:
        read_manifests(Path(settings.operator_yaml))
