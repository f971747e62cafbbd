# SPDX-License-Identifier: MIT
"""The objects of a burst, as they were listed, grouped into parts.

A burst is made as one Job or MiniCluster, its main part; each growth adds another part.
No part owns another, so the end or deletion of a part does not affect the others. An
annotation of a part names its hosts; a shrink removes the last hosts of a part, or
deletes the part. The annotation of a pod never changes, so it tells the pod's host.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec

from burst.kits.kube.kinds import JOB, MINICLUSTER, POD
from burst.kits.pods.names import first_of
from burst.kits.pods.status.kept_object import KeptObject
from burst.model.burst import BurstId


class BurstPart(msgspec.Struct, frozen=True):
    """A part of a burst: the objects of its provision, or of one growth."""

    name: str
    """The name of its Job and of its MiniCluster."""
    first: int
    """How many hosts of the burst precede those of the part; 0 for the main part."""
    hosts: tuple[str, ...]
    parents: tuple[KeptObject, ...]
    """Its Job, its MiniCluster or both."""
    pods: tuple[KeptObject, ...]
    former: tuple[KeptObject, ...] = ()
    """The pods of its hosts in `BurstObjects.former`."""

    @property
    def deleted(self) -> bool:
        """Whether its Job or MiniCluster is gone or being deleted."""
        clusters = [item for item in self.parents if item.kind == MINICLUSTER.name]
        return not self.parents or any(p.ending for p in clusters or self.parents)

    @property
    def jobs(self) -> list[KeptObject]:
        """Its Job, if there is one."""
        return [item for item in self.parents if item.kind == JOB.name]


class BurstObjects(msgspec.Struct, frozen=True):
    """All objects of one burst, as they were listed."""

    id: BurstId
    objects: tuple[KeptObject, ...]
    former: tuple[KeptObject, ...] = ()
    """The last pod of each host that is gone, as it was last seen, if known."""

    def of(self, *kinds: str) -> list[KeptObject]:
        """Return the objects of these kinds."""
        return [item for item in self.objects if item.kind in kinds]

    @property
    def hosts(self) -> tuple[str, ...]:
        """The burst's hosts, from annotations of its objects; empty without them."""
        return tuple(host for part in self.parts for host in part.hosts)

    @property
    def parts(self) -> tuple[BurstPart, ...]:
        """The main part, and the parts of growths that are not being deleted."""
        found = [self._part(self.id, 0, self._main_hosts, self._main)]
        for parent in self._growths:
            if not parent.ending:
                name, hosts = parent.name, parent.hosts
                parents = [p for p in self._parents if p.name == name]
                found.append(self._part(name, first_of(self.id, name), hosts, parents))
        return tuple(sorted(found, key=lambda part: part.first))

    @property
    def leaving(self) -> tuple[str, ...]:
        """The hosts that leave the burst by a shrink, and still have an object."""
        told = [host for item in self.objects for host in item.leaving]
        told += [host for item in self._growths for host in item.hosts]
        told += [self.host_of(pod) for pod in self.of(POD.name)]
        stay = set(self.hosts)
        return tuple(h for h in dict.fromkeys(told) if h and h not in stay)

    @property
    def growths(self) -> tuple[str, ...]:
        """The names of the growths that have an object other than a pod."""
        named = (i.name for i in self.objects if i.kind != POD.name)
        return tuple(sorted({name for name in named if first_of(self.id, name)}))

    @property
    def ending(self) -> bool:
        """Whether the burst is being reaped, which deletes all its parts."""
        if not all(growth.ending for growth in self._growths):
            return False
        return any(o.ending for o in self._main or self._parents or self.objects)

    @property
    def is_complete(self) -> bool:
        """Whether the burst was made completely.

        Its Job or MiniCluster was made and started; it may be gone if a growth exists.
        """
        made = bool(self._main or self._growths)
        return made and not any(parent.incomplete for parent in self._main)

    def host_of(self, pod: KeptObject) -> str:
        """Return the host that a pod was made for; empty if that is not known."""
        hosts, index = pod.hosts or self._main_hosts, pod.index
        return hosts[index] if 0 <= index < len(hosts) else ""

    def _part(
        self, name: str, first: int, hosts: tuple[str, ...], parents: list[KeptObject]
    ) -> BurstPart:
        own = set(hosts)
        pods = tuple(pod for pod in self.of(POD.name) if self.host_of(pod) in own)
        former = tuple(pod for pod in self.former if self.host_of(pod) in own)
        return BurstPart(name, first, hosts, tuple(parents), pods, former)

    @property
    def _parents(self) -> list[KeptObject]:
        return self.of(JOB.name, MINICLUSTER.name)

    @property
    def _main(self) -> list[KeptObject]:
        return [item for item in self._parents if not first_of(self.id, item.name)]

    @property
    def _main_hosts(self) -> tuple[str, ...]:
        """The hosts of the main part, from its Job or MiniCluster or other objects.

        If the burst has grown, the other objects are pods, which may be of a growth;
        the hosts of growths are left out.
        """
        others = (o for o in self.objects if not first_of(self.id, o.name))
        grown = {host for parent in self._growths for host in parent.hosts}
        found = (each.hosts for each in (*self._main, *others))
        return next((hosts for hosts in found if hosts and not grown & {*hosts}), ())

    @property
    def _growths(self) -> list[KeptObject]:
        """Return the Jobs or MiniClusters that we made for growths."""
        parents = [p for p in self._parents if first_of(self.id, p.name)]
        return [parent for parent in parents if parent.hosts]


def group_by_burst(objects: Iterable[KeptObject]) -> list[BurstObjects]:
    """Return the bursts to which the objects belong, in the order of their ids."""
    by_id: dict[str, list[KeptObject]] = defaultdict(list)
    for item in objects:
        by_id[item.burst].append(item)
    # Objects with our labels but without a burst's id were not made by us.
    return [BurstObjects(BurstId(i), tuple(by_id[i])) for i in sorted(by_id) if i]
