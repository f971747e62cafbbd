# SPDX-License-Identifier: MIT
"""Makes bursts grow and shrink.

A growth is a Job or MiniCluster of its own, with the further hosts. This has three
reasons: the hosts are in a ConfigMap that never changes, so no kubelet can have an
earlier version; a quota judges a growth as it does a burst; and a burst of MiniClusters
can grow, although the operator fixes the scripts and the largest size of a MiniCluster
when it makes its pods. The first Job does not own the growth, so jobs run on a growth
even after the first Job is gone.

A shrink deletes whole parts, the last one first, and removes the last pods of a part
that is needed only partly: an indexed Job is elastic, and ends its highest indices
first. One request changes the part's hosts and size. The hosts that leave are noted in
an annotation of the part until they have no pod. So they are listed even if the Job
makes one of their pods late.

Source: the Kubernetes documentation, "Jobs", elastic indexed Jobs (since 1.27), and
`controllers/flux/scale.go` of the Flux Operator as of 2026 (commit 0d75cef8).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import msgspec

from burst.errors import NotFound, SpecRefused, Transient
from burst.kits.kube.cluster import Cluster
from burst.kits.kube.kinds import (
    CONFIG_MAP,
    JOB,
    MINICLUSTER,
    POD,
    SERVICE,
    Manifest,
    is_ending,
    labels_of,
    name_of,
)
from burst.kits.pods.lifecycle.creator import Creator, OtherHosts
from burst.kits.pods.lifecycle.reaper import Reaper, find_ours, kinds_of, made_for
from burst.kits.pods.lifecycle.stuck_pods import delete_stuck
from burst.kits.pods.names import (
    HOSTS,
    ID,
    LEAVING,
    SPEC,
    Tags,
    first_of,
    is_name,
    spec_hash,
)
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.status.burst_objects import BurstObjects, BurstPart
from burst.kits.pods.status.kept_object import KeptObject, kept
from burst.kits.pods.template import pod
from burst.kits.pods.template.render import render
from burst.model.ranks import format_hostlist
from burst.provider import BurstSpec

_FINISHED = ("Succeeded", "Failed")


def can_resize(settings: PodSettings) -> bool:
    """Return whether bursts with these settings can grow and shrink.

    In a queue of Kueue they cannot: Kueue stops a Job whose size is changed, and with
    it the followers that are to stay.
    """
    return not settings.queue


class Resizer:
    """Resizes the bursts of one owner in one namespace."""

    def __init__(
        self, cluster: Cluster, settings: PodSettings, tags: Tags, creator: Creator
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._namespace = settings.namespace
        self._tags = tags
        self._creator = creator
        self._reaper = Reaper(cluster, settings, tags)
        self._parent = kinds_of(settings)[0]

    def resize(self, spec: BurstSpec, now: float) -> None:
        """Make the burst have the hosts of `spec`; see `Provider.resize`."""
        found = self._find(spec)
        have, size = found.hosts, len(spec.hosts)
        both = min(len(have), size)
        if not both or have[:both] != spec.hosts[:both]:
            raise OtherHosts(str(spec.burst_id))
        if len(have) != size:
            self._check_queue(spec, found)
        if size > len(have):
            # Check the size of the whole burst before anything is made.
            pod.offer_table_for(spec, self._settings)
        self._go_on_deleting(spec, found, now)
        for part in found.parts:
            if 0 < size - part.first < len(part.hosts):
                self._cut(spec, part)
        if size >= len(have):
            self._grow(spec, found, now)

    def provision_again(self, spec: BurstSpec, now: float) -> None:
        """Make the missing objects of a burst that was resized to these hosts.

        Raises OtherHosts if it has other hosts.
        """
        found = self._find(spec)
        if found.hosts != spec.hosts:
            raise OtherHosts(str(spec.burst_id))
        self._grow(spec, found, now)

    def _find(self, spec: BurstSpec) -> BurstObjects:
        """Return the burst's objects. Raises NotFound, Transient, SpecRefused."""
        name = spec.burst_id
        if spec.program is not None:
            raise SpecRefused(f"{name} is isolated, and keeps its size")
        if not is_name(name):
            raise NotFound(f"nothing of {name} exists")
        # Read it by its name first, as a proxy may answer a list from its cache.
        main = self._cluster.get(self._parent, self._settings.namespace, name)
        own = main is not None and self._tags.own(main)
        listed = find_ours(self._cluster, self._settings, self._tags.labels(name))
        self._check_form(name, [*filter(None, [main]), *listed])
        if main is None or not own or labels_of(main).get(ID) != name:
            if listed:
                raise Transient(f"{name} is being deleted", "wait for its end")
            namespace = self._settings.namespace
            raise NotFound(f"nothing of {name} exists in namespace {namespace}")
        uid = main["metadata"]["uid"]
        others = (item for item in listed if item["metadata"]["uid"] != uid)
        found = BurstObjects(name, tuple(map(kept, (main, *others))))
        if is_ending(main):
            raise Transient(f"{name} is being reaped", "wait for its end")
        if not found.is_complete:
            raise Transient(f"{name} is not complete", "wait for its provision")
        return found

    def _check_form(self, name: str, objects: Iterable[Manifest]) -> None:
        jobs = (i for i in objects if i["kind"] == JOB.name and name_of(i) == name)
        by_operator = self._parent == MINICLUSTER
        if any(made_for(job, name) != by_operator for job in jobs):
            raise SpecRefused(
                f"{name} was made with another form, and keeps its size",
                "set `form` of the provider as it was, or wait for its end",
            )

    def _check_queue(self, spec: BurstSpec, found: BurstObjects) -> None:
        if any(parent.queued for parent in found.of(JOB.name, MINICLUSTER.name)):
            raise SpecRefused(
                f"{spec.burst_id} is in a queue of Kueue, which stops a Job whose size"
                " is changed",
                "set `queue` of the provider, whose bursts then keep their size",
            )

    def _go_on_deleting(self, spec: BurstSpec, found: BurstObjects, now: float) -> None:
        """Delete the parts after the last host, and remains of earlier growths."""
        size, live = len(spec.hosts), {part.name for part in found.parts}
        for name in found.growths:
            behind = first_of(spec.burst_id, name) >= size
            if behind or (name not in live and not _is_begun(name, found, spec)):
                self._reaper.reap_part(spec.burst_id, name, now)
        self._end_pods(found, now)

    def _end_pods(self, found: BurstObjects, now: float) -> None:
        """End the pods of hosts that left; then remove the annotation LEAVING."""
        leaving = set(found.leaving)
        pods = [p for p in found.of(POD.name) if found.host_of(p) in leaving]
        for each in pods:
            # A Job that shrinks deletes only running pods, not those that have ended.
            if each.phase in _FINISHED and not each.ending:
                self._cluster.delete(each.reference(self._namespace), "Background")
        delete_stuck(self._cluster, self._namespace, pods, now)
        there = {found.host_of(each) for each in pods}
        for parent in found.of(self._parent.name):
            left = parent.leaving
            if left and there.isdisjoint(left) and not parent.ending:
                noted: Manifest = {"annotations": {LEAVING: None}}
                self._merge(parent, {"metadata": noted})

    def _cut(self, spec: BurstSpec, part: BurstPart) -> None:
        """Remove the last hosts from a part; their pods exist for a while."""
        count = len(spec.hosts) - part.first
        stay = _slice(spec, part.first, part.first + count)
        leave = part.hosts[count:]
        (parent,) = (p for p in part.parents if p.hosts)
        self._delete_services(spec, leave)
        left = tuple(dict.fromkeys((*parent.leaving, *leave)))
        noted = {
            SPEC: spec_hash(stay),
            HOSTS: format_hostlist(stay.hosts),
            LEAVING: format_hostlist(left),
        }
        size: Manifest = {"completions": count, "parallelism": count}
        if self._parent == MINICLUSTER:
            size = {"size": count}
        change = {"metadata": {"annotations": noted}, "spec": size}
        self._merge(parent, change)

    def _merge(self, parent: KeptObject, change: Manifest) -> None:
        self._cluster.merge(parent.reference(self._namespace), change)

    def _delete_services(self, spec: BurstSpec, hosts: Collection[str]) -> None:
        """Delete the Services of `names`, so that another burst can make its own."""
        if not self._settings.names:
            return
        ours = self._tags.labels(spec.burst_id)
        for host in hosts:
            there = self._cluster.get(
                SERVICE, self._settings.namespace, host, metadata_only=True
            )
            if there is not None and ours.items() <= labels_of(there).items():
                self._cluster.delete(there, "Background")

    def _grow(self, spec: BurstSpec, found: BurstObjects, now: float) -> None:
        """Make the missing objects of growths, and a growth with the new hosts."""
        first = len(found.hosts)
        if late := set(spec.hosts[first:]).intersection(found.leaving):
            names = ", ".join(sorted(late))
            raise Transient(f"{names}: removed by a shrink, and not ended yet")
        for part in found.parts:
            begun = not any(parent.incomplete for parent in part.parents)
            started = self._parent == JOB and begun
            if part.first and not started:
                end = part.first + len(part.hosts)
                self._make(_slice(spec, part.first, end), part.first, now)
        if first < len(spec.hosts):
            self._make(_slice(spec, first, len(spec.hosts)), first, now)

    def _make(self, more: BurstSpec, first: int, now: float) -> None:
        """Make the missing objects of a growth with these hosts."""
        try:
            made = render(more, self._settings, self._tags, now, first)
            self._creator.create(made, more)
        except OtherHosts as error:
            raise Transient(error.what, "the list was out of date") from error


def _is_begun(name: str, found: BurstObjects, spec: BurstSpec) -> bool:
    """Tell whether only the marker of this growth exists, so that it can be continued.

    A marker with other hosts is of an earlier growth that was not completed.
    """
    named = [i for i in found.objects if i.kind != POD.name and i.name == name]
    more = spec.hosts[first_of(spec.burst_id, name) :]
    return not any(
        i.kind != CONFIG_MAP.name or i.leaving or i.hosts != more for i in named
    )


def _slice(spec: BurstSpec, first: int, end: int) -> BurstSpec:
    """Return the spec with only the hosts `first` to `end`, exclusive."""
    hosts, ranks = spec.hosts[first:end], spec.ranks[first:end]
    return msgspec.structs.replace(spec, hosts=hosts, ranks=ranks)
