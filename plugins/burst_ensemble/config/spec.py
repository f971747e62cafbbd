# SPDX-License-Identifier: MIT
"""The file of an ensemble, as it was read: `burst_ensemble.config.file` reads it.

Keys have the words of the Ensemble Operator's Custom Resource where it has one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, Literal

from burst.config.convert import Seconds, Table

NAME_OF_MEMBER = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
ANY_SIZE = 1_000_000
"""`max` of a member whose size is not the file's to say."""
NAME_OF_JOBS = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")


class JobSpec(Table, frozen=True):
    """`[[jobs]]`: jobs that are alike. Those of the file's top are for all members."""

    name: str
    """What rules, metrics and `burst ensemble status` call them."""
    command: str = ""
    """What each of them runs, split as a shell would; no shell is started."""
    batch: str = ""
    """In place of a command: a file in the ensemble file's directory, each line of
    which is the command of one job. Empty lines and lines that begin with # are left
    out."""
    count: int = 1
    """How many; 0: as many as the algorithm submits. Not with `batch`."""
    nodes: int = 1
    """Nodes of each."""
    tasks: int = 0
    """Tasks of each; 0: one a node."""
    cores: int = 0
    """Cores of each task; 0: those of the nodes, divided among the tasks."""
    duration: Seconds = Seconds(0)
    """Time limit of each; 0 for none."""
    workdir: str = ""
    """Where it runs; default: where the ensemble file is."""
    commands: tuple[str, ...] = ()
    """The lines of `batch`, once it is read."""

    @property
    def total(self) -> int:
        """How many jobs the file asks for; 0 for as many as the algorithm submits."""
        return len(self.commands) if self.batch else self.count

    def command_of(self, number: int) -> str:
        """Return what the job of that number runs."""
        return (
            self.commands[number % len(self.commands)] if self.batch else self.command
        )


class AlgorithmSpec(Table, frozen=True):
    """`algorithm`: which plug-in, and its options as they are written."""

    name: str
    options: Mapping[str, Any] = {}


class EnsembleLimits(Table, frozen=True):
    """`[limits]`: of all members together."""

    nodes: int = 0
    """Most nodes that are paid at once; 0 for no limit."""
    money: float = 0.0
    """Once this is spent all members end; 0 for no limit."""
    time: Seconds = Seconds(math.inf)
    """After this time all members end."""


class MemberSpec(Table, frozen=True):
    """`[[members]]`: one burst with jobs of its own."""

    name: str
    """Lower-case letters, digits and dashes. Of `count` members it is the stem."""
    provider: str
    """A table `[providers.NAME]` of the settings; default: the only one. Empty for an
    external member."""
    offer: str = ""
    """Default: the provider's cheapest that is large enough."""
    image: str = ""
    """The container image of its nodes; default: that of its provider."""
    mode: Literal["joined", "isolated", "external"] = "joined"
    """joined: bursts that a provider makes, whose nodes join the lead. isolated: each
    of its jobs runs in an isolated burst; its size is how many nodes these may have
    together. external: an instance that runs already, beside which `burst ensemble
    agent` runs; its size is its own."""
    size: int = 1
    """Nodes at first; default: `min`."""
    min: int = 1
    max: int = 1
    """Default: `size`."""
    share: float = 1.0
    """Weight in the fair share, where members want more nodes than `[limits] nodes`."""
    jobs: tuple[JobSpec, ...] = ()
    algorithms: tuple[AlgorithmSpec, ...] = ()
    """In the order in which they are asked."""
    grow_window: Seconds = Seconds(30)
    """`growWindow`: from one change of its size to the next growth, at least."""
    shrink_window: Seconds = Seconds(60)
    """`shrinkWindow`: from one change of its size to the next shrinking, at least."""
    minicluster: Mapping[str, Any] = {}
    """Fields of a MiniCluster's `spec` that stand for no key of a member."""

    @property
    def has_agent(self) -> bool:
        """Whether it is an instance of its own, that an agent tells of."""
        return self.mode == "external"

    @property
    def is_isolated(self) -> bool:
        """Whether each of its jobs has an isolated burst of its own."""
        return self.mode == "isolated"


class EnsembleSpec(Table, frozen=True):
    """One ensemble, checked: names are unique, each member has its own jobs."""

    name: str
    members: tuple[MemberSpec, ...]
    """One for each burst: those with a `count` are written out, NAME-0, NAME-1..."""
    jobs: tuple[JobSpec, ...] = ()
    """For whichever member submits them first."""
    limits: EnsembleLimits = EnsembleLimits()
    check: Seconds = Seconds(10)
    """`checkSeconds`: from one decision to the next."""
    custom: Mapping[str, tuple[str, ...]] = {}
    """`[custom]`: commands that rules may run, by name."""
    directory: str = ""
    """Where the file is."""
    notes: tuple[str, ...] = ()
    """What the file says and is not used."""

    def member(self, name: str) -> MemberSpec:
        """Return the member of that name. Raises KeyError."""
        for each in self.members:
            if each.name == name:
                return each
        raise KeyError(name)
