# SPDX-License-Identifier: MIT
"""The file of an ensemble: its keys, their ranges and what they mean.

The same classes hold the file, the request of `burst ensemble up`, and the record.
Keys have the names of the Ensemble Operator's Custom Resource if it has them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from burst.config.convert import Seconds, SecondsOrNumber, Table

MOST_JOBS = 100_000
"""The maximum number of jobs of one entry."""
MOST_MEMBERS = 200
ANY_SIZE = 1_000_000
"""`max` of an external member, whose size the file does not set."""
NAME_OF_MEMBER = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
NAME_OF_JOBS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
_Number = Annotated[int, Meta(ge=0, le=ANY_SIZE)]


class JobSpec(Table, frozen=True):
    """`[[jobs]]`: jobs that are alike. Those at the file's top are for all members."""

    internal: ClassVar[frozenset[str]] = frozenset({"commands"})

    name: str
    """What rules, metrics and `burst ensemble status` call them."""
    command: str = ""
    """What each job runs, split as a shell would; no shell is started."""
    batch: str = ""
    """In place of a command: a file in the ensemble file's directory, each line of
    which is the command of one job. Empty lines and lines that begin with # are left
    out."""
    count: Annotated[int, Meta(ge=0, le=MOST_JOBS)] = 1
    """How many jobs; 0: as many as the algorithm submits. Not with `batch`."""
    nodes: Annotated[int, Meta(ge=1)] = 1
    """Nodes of each job."""
    tasks: _Number = 0
    """Tasks of each job; 0: one per node."""
    cores: _Number = 0
    """Cores of each task; 0: those of the nodes, divided among the tasks."""
    duration: SecondsOrNumber = SecondsOrNumber(0)
    """Time limit of each job; 0 for none."""
    workdir: str = ""
    """Working directory; default: the directory of the ensemble file."""
    commands: tuple[str, ...] = ()
    """The commands in the file `batch`; empty until it is read."""

    @property
    def total(self) -> int:
        """How many jobs the file asks for; 0 for as many as the algorithm submits."""
        return len(self.commands) if self.batch else self.count

    def command_of(self, number: int) -> str:
        """Return the command of the job with this number."""
        return (
            self.commands[number % len(self.commands)] if self.batch else self.command
        )


class AlgorithmSpec(Table, frozen=True):
    """`algorithm`: the name of a plug-in, and its options as they are written."""

    name: str
    options: Mapping[str, Any] = {}


class EnsembleLimits(Table, frozen=True):
    """`[limits]`: limits for all members together."""

    nodes: _Number = 0
    """Maximum number of nodes that are paid at once; 0 for no limit."""
    money: Annotated[float, Meta(ge=0)] = 0.0
    """All members end when this amount is spent; 0 for no limit."""
    time: SecondsOrNumber = SecondsOrNumber(math.inf)
    """All members end after this time."""


class MemberSpec(Table, frozen=True, rename="camel"):
    """`[[members]]`: one member, or several that are alike."""

    retired: ClassVar[Mapping[str, str]] = {
        "minicluster": "set size, min, max and image of the member: what spec.size,"
        " minSize, maxSize and containers[0].image of minicluster were",
        "sidecar": "remove it: the daemon reads the member's queue without a sidecar",
        **dict.fromkeys(
            ("growWindow", "shrinkWindow"), "set it at the top of the file, for all"
        ),
    }

    name: str = ""
    """Lower-case letters, digits and dashes. Default: the name of the ensemble and a
    number."""
    provider: str = ""
    """A table `[providers.NAME]` of the settings; default: the only one."""
    offer: str = ""
    """One of the provider's offers; default: the cheapest that is large enough."""
    image: str = ""
    """The container image of its nodes, with the lead's MAJOR.MINOR of Flux, or any
    Flux for isolated members, unless the provider has a `view`. Default: that of the
    provider."""
    mode: Literal["joined", "isolated", "external"] = "joined"
    """joined: a burst whose nodes join the lead. isolated: each job has an instance of
    its own, and the member's size limits the nodes of all these instances together.
    external: an instance that runs already, with its own size; `burst ensemble agent`
    runs beside it."""
    size: _Number = 0
    """Nodes at first; default: `min`."""
    min: _Number = 1
    """Minimum number of nodes, from 0."""
    max: _Number = 0
    """Maximum number of nodes; default: `size`."""
    count: Annotated[int, Meta(ge=1, le=MOST_MEMBERS)] = 1
    """How many members like this there are: `NAME-0`, `NAME-1` and so on."""
    share: Annotated[float, Meta(ge=0.001)] = 1.0
    """Weight of the member when members want more nodes than `[limits] nodes`."""
    jobs: tuple[JobSpec, ...] = ()
    algorithms: tuple[AlgorithmSpec, ...] = msgspec.field(default=(), name="algorithm")
    """Its algorithms, in the order in which they are called."""

    @property
    def is_external(self) -> bool:
        """Whether it is an instance that runs already."""
        return self.mode == "external"

    @property
    def is_isolated(self) -> bool:
        """Whether each of its jobs has an isolated burst of its own."""
        return self.mode == "isolated"


class EnsembleSpec(Table, frozen=True, rename="camel"):
    """The top of an ensemble's file. When the file has been read, names are unique,
    sizes are set, and a member with a `count` has become that many members.
    """

    internal: ClassVar[frozenset[str]] = frozenset({"directory"})

    name: str = ""
    """What commands call the ensemble. It must be set."""
    check: SecondsOrNumber = msgspec.field(
        default=SecondsOrNumber(10), name="checkSeconds"
    )
    """The time from one check to the next. At a check the algorithms decide."""
    grow_window: Seconds = Seconds(30)
    """The least time from one change of a member's size to its next growth."""
    shrink_window: Seconds = Seconds(60)
    """The least time from one change of a member's size to its next shrinking."""
    algorithms: tuple[AlgorithmSpec, ...] = msgspec.field(default=(), name="algorithm")
    """The algorithms of members that have none of their own."""
    members: tuple[MemberSpec, ...] = ()
    jobs: tuple[JobSpec, ...] = ()
    """Jobs for whichever member submits them first."""
    limits: EnsembleLimits = EnsembleLimits()
    custom: Mapping[str, tuple[str, ...]] = {}
    """`[custom]`: commands that rules may run, by name."""
    directory: str = ""
    """The directory of the file."""

    def member(self, name: str) -> MemberSpec:
        """Return the member of that name. Raises KeyError."""
        for each in self.members:
            if each.name == name:
                return each
        raise KeyError(name)
