# SPDX-License-Identifier: MIT
"""The base class of providers whose followers are pods."""

from __future__ import annotations

import abc
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from burst.kits.kube.manifests import read_manifests
from burst.kits.pods.lifecycle.resizer import can_resize
from burst.kits.pods.names import Tags
from burst.kits.pods.pod_bursts import PodBursts
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template.render import render
from burst.kits.pods.template.storage import known_directories
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.model.shape import Shape
from burst.provider import (
    BurstMode,
    BurstSpec,
    BurstStatus,
    Offer,
    OptionalMethod,
    OwnedBurst,
    Provider,
)


def offers(settings: PodSettings) -> Sequence[Offer]:
    """Return the offers of the settings' tables."""
    return [
        Offer(
            name=name,
            shape=Shape(table.cores, table.gpus),
            max_nodes=table.max_nodes,
            price=table.price,
            join_time=table.join_time,
            modes=settings.modes,
            own_images=settings.own_images,
            spot=settings.is_spot(table),
            guests=settings.multi_user is not None,
        )
        for name, table in settings.offers.items()
    ]


class PodSettingsProvider(Provider):
    """The part of a provider of pods that needs only its name and its settings."""

    def __init__(self, name: str, settings: PodSettings, owner: str) -> None:
        self.tags = Tags(owner, name)
        self._can_resize = can_resize(settings)
        self._offers = offers(settings)
        self._directories = known_directories(settings)

    @classmethod
    def modes(cls, settings: PodSettings) -> tuple[BurstMode, ...]:
        """Return the modes that bursts may have."""
        return settings.modes

    @classmethod
    def own_images(cls, settings: PodSettings) -> bool:
        """Return whether bursts may have images of their own."""
        return settings.own_images

    @classmethod
    def offer_names(cls, settings: PodSettings) -> Collection[str]:
        """Return the names of the offers in the settings."""
        return settings.offers

    def offers(self) -> Sequence[Offer]:
        """Return the offers in the settings."""
        return self._offers

    def directories(self) -> Sequence[str]:
        """Return the directories that each follower has, whatever its image has."""
        return self._directories

    @abc.abstractmethod
    def delete(self, burst_id: BurstId, *, force: bool) -> None:
        """Do what `reap` does; with `force`, what `force_reap` does."""

    def reap(self, burst_id: BurstId) -> None:
        """Delete everything of the burst. Raises NotFound once nothing is left."""
        self.delete(burst_id, force=False)

    def force_reap(self, burst_id: BurstId) -> None:
        """As `reap`, but also delete pods that their kubelet does not end."""
        self.delete(burst_id, force=True)

    def has(self, method: OptionalMethod) -> bool:
        """Return whether the method may be called; settings may exclude `resize`."""
        return super().has(method) and (method != "resize" or self._can_resize)


class PodProvider(PodSettingsProvider):
    """A provider for one cluster. A subclass adds `Settings` and `bursts`."""

    @abc.abstractmethod
    def bursts(self) -> PodBursts:
        """Return the bursts in the cluster.

        Each method of the provider calls it, so it should return the same object each
        time. It may raise the errors of a provider, such as Transient while the cluster
        is being made.
        """

    def provision(self, spec: BurstSpec) -> None:
        """Make the objects of the burst that do not exist."""
        self.bursts().provision(spec)

    def resize(self, spec: BurstSpec) -> None:
        """Add pods to the burst, or delete its last pods."""
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
        """Write an event about the burst's Job or MiniCluster."""
        self.bursts().record_event(burst_id, event, text)

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check the cluster, our rights in it, the image and the lead's address."""
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

    Call it before making a cluster, which takes time or costs money.
    """
    render(spec, settings, tags, clock())
    if settings.operator_yaml:
        read_manifests(Path(settings.operator_yaml))
