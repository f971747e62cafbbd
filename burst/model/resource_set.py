# SPDX-License-Identifier: MIT
"""R of RFC 20: the cores and GPUs of each rank in a resource set.

This is the only codec for R in this project. It reads leniently what Flux or a person
wrote: `rank` may be a number, and all keys but R_lite may be missing. Texts are parsed
only when their value is used, so that reading the R of a large instance is cheap.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from burst.decode import from_json, from_plain
from burst.model.ranks import format_hostlist, format_idset, parse_hostlist, parse_idset
from burst.model.shape import Shape


class ResourceGroup(msgspec.Struct, frozen=True):
    """An entry of R_lite: ranks with equal resources. Texts are idsets (RFC 22)."""

    rank: str | int
    children: Mapping[str, str] = {}
    """The ids of the resources of each rank, by type: `core`, `gpu`."""

    @property
    def ranks(self) -> frozenset[int]:
        """The ranks. Raises ValueError."""
        return parse_idset(str(self.rank))

    def ids(self, kind: Literal["core", "gpu"]) -> frozenset[int]:
        """Return the ids of a type that each rank has. Raises ValueError."""
        return parse_idset(self.children.get(kind, ""))


class ResourceNode(msgspec.Struct, frozen=True):
    """One rank of a resource set that names its hosts."""

    rank: int
    host: str
    children: Mapping[str, str]
    """The ids of its resources by type, as in ResourceGroup."""


class _Execution(msgspec.Struct, frozen=True, kw_only=True):
    """The object `execution`."""

    R_lite: tuple[ResourceGroup, ...]
    starttime: float = 0.0
    expiration: float = 0.0
    nodelist: tuple[str, ...] = ()
    properties: Mapping[str, str] = {}


class ResourceSet(msgspec.Struct, frozen=True, kw_only=True):
    """R, version 1. Its properties raise ValueError if a text in it is malformed."""

    version: Literal[1] = 1
    execution: _Execution
    attributes: Any = msgspec.UNSET
    scheduling: Any = msgspec.UNSET
    """Data of schedulers such as Fluxion; kept as it is."""

    @property
    def groups(self) -> tuple[ResourceGroup, ...]:
        """The entries of R_lite."""
        return self.execution.R_lite

    @property
    def ranks(self) -> frozenset[int]:
        """All ranks."""
        return frozenset().union(*(group.ranks for group in self.groups))

    @property
    def hosts(self) -> tuple[str, ...]:
        """Host names, in the order of the ranks; empty if R has none."""
        lists = self.execution.nodelist
        return tuple(host for text in lists for host in parse_hostlist(text))

    @property
    def properties(self) -> dict[str, frozenset[int]]:
        """The ranks that have each property, by its name."""
        written = self.execution.properties.items()
        return {name: parse_idset(ranks) for name, ranks in written}

    @property
    def expiration(self) -> float:
        """When the resource set expires, in seconds since the epoch; 0 for never."""
        return self.execution.expiration

    @property
    def nodes(self) -> tuple[ResourceNode, ...]:
        """Its ranks and their hosts, in the order of the ranks.

        Also raises ValueError if the numbers of hosts and ranks differ.
        """
        children = {
            rank: group.children for group in self.groups for rank in group.ranks
        }
        pairs = zip(sorted(children), self.hosts, strict=True)
        return tuple(ResourceNode(rank, host, children[rank]) for rank, host in pairs)

    def with_ranks(
        self,
        groups: Sequence[ResourceGroup],
        hosts: Sequence[str],
        properties: Iterable[str] = (),
    ) -> ResourceSet:
        """Return it with further ranks, which have these hosts and properties.

        Raises ValueError.
        """
        ranks = frozenset().union(*(group.ranks for group in groups))
        found = self.properties
        for name in properties:
            found[name] = found.get(name, frozenset()) | ranks
        execution = msgspec.structs.replace(
            self.execution,
            R_lite=(*self.groups, *groups),
            nodelist=(format_hostlist((*self.hosts, *hosts)),),
            properties={name: format_idset(ids) for name, ids in found.items()},
        )
        return msgspec.structs.replace(self, execution=execution)

    def encode(self) -> str:
        """Return R as JSON text."""
        return msgspec.json.encode(self).decode()


EMPTY = ResourceSet(execution=_Execution(R_lite=()))
"""An R without ranks, to which ranks can be added."""


def group_of(ranks: Iterable[int], shape: Shape) -> ResourceGroup:
    """Return the entry for ranks of a shape; ids of cores and GPUs begin at 0."""
    children = {"core": format_idset(range(shape.cores))}
    if shape.gpus:
        children["gpu"] = format_idset(range(shape.gpus))
    return ResourceGroup(format_idset(ranks), children)


def shape_of(children: Mapping[str, str]) -> Shape:
    """Return the number of cores and GPUs in `children`. Raises ValueError."""
    return Shape(
        len(parse_idset(children.get("core", ""))),
        len(parse_idset(children.get("gpu", ""))),
    )


def resource_set(found: Any) -> ResourceSet:
    """Return R from an object that was read from JSON. Raises ValueError."""
    try:
        return from_plain(found, ResourceSet)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error


def decode_resource_set(text: str | bytes) -> ResourceSet:
    """Return R from JSON text. Raises ValueError."""
    try:
        return from_json(text, ResourceSet)
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error
