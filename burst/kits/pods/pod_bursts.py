# SPDX-License-Identifier: MIT
"""The bursts in one cluster, for all providers whose followers are pods.

    class MyProvider(PodProvider):
        Settings = MySettings               # derives from PodSettings

        def __init__(self, name, settings, owner):
            super().__init__(name, settings, owner)
            cluster = Cluster(Endpoint(url, authority, token))
            self._bursts = PodBursts(cluster, settings, self.tags)

        def bursts(self): return self._bursts

If the provider also makes the cluster, `provision` makes it first and raises Transient
until it exists. `reap` deletes it once `PodBursts.reap` raises NotFound.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from burst.errors import NotFound
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.faults import NoNamespace, NoRight
from burst.kits.kube.kinds import NAMESPACE
from burst.kits.kube.manifests import install
from burst.kits.pods.diagnose.examine import examine_cluster
from burst.kits.pods.diagnose.guest_probe import find_guest
from burst.kits.pods.diagnose.probe import Probe
from burst.kits.pods.lifecycle.creator import Creator, OtherHosts
from burst.kits.pods.lifecycle.reaper import Reaper
from burst.kits.pods.lifecycle.resizer import Resizer
from burst.kits.pods.lifecycle.watched_bursts import WatchedBursts
from burst.kits.pods.names import Tags
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status.burst_events import BurstEvents
from burst.kits.pods.status.observer import Observer
from burst.kits.pods.status.owned import list_owned
from burst.kits.pods.template.render import render
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding
from burst.model.lead import LeadIdentity
from burst.provider import BurstSpec, BurstStatus, OwnedBurst


class PodBursts:
    """All bursts of one provider of one owner in one namespace of a cluster.

    Threads may call its methods at the same time, within the limits of
    `Provider.concurrency`.
    """

    def __init__(
        self,
        cluster: Cluster,
        settings: PodSettings,
        tags: Tags,
        *,
        own_cluster: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`own_cluster`: the cluster was made for the bursts and has no namespace yet.

        Use one object for many calls: its first `observe` lists all objects, and later
        ones get only the changes from the API server.
        """
        self.cluster = cluster
        """The connection to the cluster."""
        self._settings = settings
        self._namespace = settings.namespace
        self._tags = tags
        self._clock = clock
        self._source = WatchedBursts(cluster, settings, tags)
        self._observer = Observer(cluster, settings, self._source, self._time_there)
        self._creator = Creator(cluster, settings.namespace, tags)
        self._resizer = Resizer(cluster, settings, tags, self._creator)
        self._reaper = Reaper(cluster, settings, tags)
        self._events = BurstEvents(cluster, settings)
        self._has_namespace = not own_cluster
        self._has_operator = settings.form != "operator" or not settings.operator_yaml

    def provision(self, spec: BurstSpec) -> None:
        """Make the objects of the burst that do not exist."""
        objects = render(spec, self._settings, self._tags, self._clock())
        if not self._has_namespace:
            self._make_namespace()
        if not self._has_operator:
            install(self.cluster, Path(self._settings.operator_yaml))
            self._has_operator = True
        with self._in_namespace():
            try:
                self._creator.create(objects, spec)
            except OtherHosts:
                self._resizer.provision_again(spec, self._clock())
        self.expect(spec.burst_id)

    def resize(self, spec: BurstSpec) -> None:
        """Make the burst have the followers of `spec`; see `Provider.resize`.

        A provider must not offer it if `can_resize` is false for its settings.
        """
        try:
            with self._in_namespace():
                self._resizer.resize(spec, self._clock())
        finally:
            # Also after an error: the next read has to show what was changed.
            self.expect(spec.burst_id, anew=True)

    def expect(self, burst_id: BurstId, *, anew: bool = False) -> None:
        """Note that the burst was provisioned, or with `anew` changed.

        The next `observe` of this object then lists it, as a watch may lag. Call it if
        another object for the same cluster did that, such as one with other settings.
        """
        self._source.expect(burst_id, anew=anew)

    def observe(self) -> Sequence[BurstStatus]:
        """Return all bursts that have an object; none if the namespace is gone."""
        try:
            with self._in_namespace():
                return self._observer.observe()
        except NoNamespace:
            return []

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners in the namespace."""
        return list_owned(self.cluster, self._settings)

    def reap(self, burst_id: BurstId, *, force: bool = False) -> None:
        """Delete all objects of the burst. Raises NotFound once there are none.

        With `force`, also delete pods that do not end; see `Provider.force_reap`.
        """
        try:
            with self._in_namespace():
                self._reaper.reap(burst_id, self._clock(), force=force)
        except NoNamespace as error:
            raise NotFound(error.what) from error

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        """Write an event about the burst's Job or MiniCluster."""
        self._events.record(burst_id, event, text)

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check the cluster, our rights in it, the image and the lead's address.

        It also checks whether `record_event` may write events.
        """
        found = examine_cluster(
            self.cluster, self._settings, lead, has_namespace=self._has_namespace
        )
        return [*found, self._events.examine()]

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        """Run a pod that tries to connect to the lead; see `Provider.probe`."""
        guest = find_guest(user, self._settings) if user else None
        probe = Probe(self.cluster, self._settings, self._tags, guest=guest)
        return probe.run(lead, tell)

    def _time_there(self) -> float:
        """Return the API server's time, to compare with the times of its objects.

        This host's clock may be wrong by minutes: pods would seem to wait for too long.
        """
        return self._clock() + self.cluster.ahead

    @contextmanager
    def _in_namespace(self) -> Iterator[None]:
        """Raise NoNamespace instead of NoRight if the namespace does not exist.

        This needs the right to read namespaces (manifests/parts/nodes).
        """
        try:
            yield
        except NoRight:
            if self.cluster.lacks_namespace(self._namespace):
                raise NoNamespace(self._namespace) from None
            raise

    def _make_namespace(self) -> None:
        if not self.cluster.get(NAMESPACE, "", self._namespace):
            meta = {"name": self._namespace}
            kind = {"apiVersion": NAMESPACE.api, "kind": NAMESPACE.name}
            self.cluster.apply({**kind, "metadata": meta})
        self._has_namespace = True
