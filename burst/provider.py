# SPDX-License-Identifier: MIT
"""The plug-in interface of providers, which make and delete followers.

A provider has four methods. Write a subclass of `Provider` with them, register it under
the entry point group `burst.providers`, and run `burst.testing.ProviderContract` on it.

    class MyProvider(Provider):
        Settings = MySettings            # a msgspec.Struct: the keys of its table

        def __init__(self, name: str, settings: MySettings, owner: str) -> None: ...

What the daemon assumes of a provider:

* It is **eventually consistent**: a burst that was provisioned may be missing from
  `observe` for a while, and one that was reaped may still be listed.
* It is **idempotent** by `burst_id`: the daemon repeats a call whose answer it lost.
* It **tags** everything it makes with the owner, its own name and the burst id, before
  or as it makes it. So each of two tables of one type sees only its own bursts, and
  `observe` finds half-built resources after a crash.
* It **may block**: each provider has a worker of its own. But it never waits for
  progress: the daemon calls `observe` to see progress.
* It is **called from one thread** at a time, unless its `concurrency` allows more.

The error that a method raises decides what the daemon does (`burst.errors`).
InsufficientCapacity: it ends this burst and does not try the offer for a while.
Transient: it calls again later. SpecRefused, from `provision`: it ends this burst and
no other. Refused: it disables the provider, and tries it again after a while. NotFound
from `reap`: nothing is left. Any other exception counts as Transient, and its traceback
is logged; three in a row open the breaker.

An author needs only what can be imported from here, from `burst.kits` and from
`burst.testing`. What `__all__` lists stays the same from release to release, or
CHANGELOG.md describes the change. Other modules may change at any time.
"""

from __future__ import annotations

import abc
import enum
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar, Literal, get_args

import msgspec

from burst.config import Seconds
from burst.errors import (
    CertificateError,
    ConfigError,
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)
from burst.model.burst import BurstId
from burst.model.event import Event
from burst.model.finding import Finding, Level, note, ok, wrong
from burst.model.lead import LeadIdentity
from burst.model.program import Program
from burst.model.request import BurstMode
from burst.model.shape import Shape

__all__ = [
    "OUTPUT_MOST",
    "BurstId",
    "BurstMode",
    "BurstSpec",
    "BurstStatus",
    "CertificateError",
    "ConfigError",
    "Event",
    "Failure",
    "Finding",
    "FollowerStatus",
    "InstanceStatus",
    "InsufficientCapacity",
    "LeadIdentity",
    "Level",
    "NotFound",
    "Offer",
    "OptionalMethod",
    "OwnedBurst",
    "Phase",
    "Program",
    "Provider",
    "ProviderError",
    "Refused",
    "Seconds",
    "Shape",
    "SpecRefused",
    "Transient",
    "note",
    "ok",
    "wrong",
]


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider can make: up to `max_nodes` equal nodes in one burst."""

    name: str
    shape: Shape
    max_nodes: int
    total: int = 0
    """The number of nodes that all bursts of the offer can have together; the daemon
    asks for no more. 0 if it is not known."""
    price: float = 0.0
    """The price per node and hour, in the site's currency; 0 for free."""
    fee: float = 0.0
    """The price per burst and hour whatever its number of nodes, such as for a cluster
    that is made for the burst; in the site's currency."""
    join_time: float = 0.0
    """The expected seconds from `provision` until followers join; 0 if not known."""
    lifetime: float = 0.0
    """The longest life of a burst in seconds, such as a partition's time limit; 0 for
    no limit. The daemon sets `BurstSpec.lease_end` from this or from `[deadlines]
    lease`, whichever is less, and drains the burst before its lease ends."""
    modes: tuple[BurstMode, ...] = ("joined",)
    """The modes that bursts of the offer can have; the first is the default."""
    spot: bool = False
    """Whether the cloud may take its nodes back at any time, as the price is low."""
    own_images: bool = False
    """Whether a burst may name a container image for its followers."""
    guests: bool = True
    """Whether its followers can run jobs of users other than the lead's owner, if the
    lead admits such users (`LeadIdentity.access`). If False, no burst of the offer is
    made for them."""


class BurstSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All that a provider needs to make one burst. It holds no secret.

    `hosts[i]` must join as rank `ranks[i]`: start its broker with that host name. The
    certificate is a path in `lead`; where followers cannot read that path, the
    provider brings them the content by a channel that nobody else can read.

    With a `program` the burst is isolated: it does not join the lead and has no
    `ranks`, and its hosts form an instance of their own, with a certificate that the
    provider makes. The first host is the lead of that instance and runs the program
    once: a program that was started is never started again, whatever fails.
    """

    burst_id: BurstId
    owner: str
    offer: str
    hosts: tuple[str, ...]
    ranks: tuple[int, ...]
    shape: Shape
    """What the lead's R declares for each node: followers must have at least this."""
    lead: LeadIdentity
    lease_end: float = 0.0
    """When the lease ends, in seconds since the epoch; 0 for no end. After it the burst
    is not needed, even if the daemon is gone: a provider that can should then end the
    burst by itself."""
    userids: tuple[int, ...] = ()
    """The users of the lead whose jobs the burst is made for, such as for accounting: a
    guest who requested it, too. Empty if the instance owner or a standing minimum
    requested it ahead of jobs. Jobs of other users may run there later, if `[plan]
    share_users` allows it."""
    banks: tuple[str, ...] = ()
    """The banks that pay for the jobs it is made for, such as for accounting; empty if
    the jobs have no bank."""
    queues: tuple[str, ...] = ()
    """The queues of these jobs; empty where the lead's queue has no name."""
    program: Program | None = None
    """The program of an isolated burst, only for providers with an offer of mode
    `isolated`; None for a burst that joins."""
    image: str = ""
    """The followers' container image, only for offers with `own_images`; empty for the
    image in the provider's settings."""


class Phase(enum.Enum):
    """The state of a burst or a follower, as its provider sees it."""

    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    ENDING = "ending"


class Failure(enum.Enum):
    """Why a burst is FAILED, where the cause changes what the daemon does."""

    OTHER = "other"
    CAPACITY = "capacity"
    REFUSED = "refused"
    """A rule of the place forbids such a burst, for example one that denies its pods;
    the same as `SpecRefused` with `by_rule`."""
    RECLAIMED = "reclaimed"
    """The cloud took its nodes back. The burst ends as reclaimed, which does not count
    as a failure of the provider or the offer."""


class FollowerStatus(msgspec.Struct, frozen=True):
    """What a provider sees of one follower.

    `why` says in a few words why the follower is in this phase; empty while it runs
    as it should.
    """

    host: str
    phase: Phase
    why: str = ""
    reclaimed: bool = False
    """Whether it lost its place to others and does not run elsewhere yet: the cloud
    took back a spot node, or a pod of a higher priority preempted it. The phase is
    PENDING if the provider starts it again, as a Job of Kubernetes does: the burst then
    ends unless it is back within 2 minutes. Otherwise the phase is FAILED, and the
    burst ends at once."""
    lost: str = ""
    """What ended it after its start, other than a call of the daemon: an eviction, a
    dead node, a person. A few words, reported until it runs again; empty if nothing
    did."""
    has_node: bool = False
    """Whether it has its node while it is PENDING, such as a VM that boots, or a pod
    whose image is pulled: the node costs from then on. In another phase it has one."""


class InstanceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider sees of the instance that an isolated burst forms."""

    online: bool = False
    """Whether all its brokers are up, so that its program was started."""
    access: str = ""
    """How a person reaches the instance: a command, or an address."""
    exit_status: int | None = None
    """The exit status of the program; None until it has ended. Must be reported until
    the burst is reaped."""
    output: str = ""
    """The last OUTPUT_MOST bytes of the program's output, once it has ended."""


OUTPUT_MOST = 256 * 1024
"""How much of an isolated burst's output is kept, from its end, in bytes of UTF-8."""


class BurstStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider sees of one burst, which may be only partly made.

    RUNNING means that all followers were started, not that any has joined.
    """

    burst_id: BurstId
    phase: Phase
    followers: tuple[FollowerStatus, ...] = ()
    why: str = ""
    """One sentence for a person that says what the burst waits for, or why it failed.
    It may contain the end of a log that explains it, but no secret."""
    failure: Failure = Failure.OTHER
    instance: InstanceStatus | None = None
    """The instance of an isolated burst; None for a burst that joins."""
    has_nodes: bool = False
    """Whether all its nodes are there and cost, whatever its followers show: a node
    group has some before there are pods."""


class OwnedBurst(msgspec.Struct, frozen=True, kw_only=True):
    """A burst of any owner, as the tags of its resources describe it."""

    owner: str
    provider: str
    """The name of the provider that made it, possibly a provider of another daemon."""
    burst_id: BurstId
    lease_end: float = 0.0
    """When its lease ends, in seconds since the epoch; 0 if never or if no tag says it.
    """


OptionalMethod = Literal[
    "resize", "force_reap", "record_event", "list_all", "probe", "check"
]
"""Methods that are called only if `Provider.has` returns True for them."""
OPTIONAL_METHODS: tuple[OptionalMethod, ...] = get_args(OptionalMethod)


class Provider(abc.ABC):
    """Makes, observes and deletes bursts.

    A provider overrides the four abstract methods. The other methods are optional:
    their defaults return nothing, or are never called because `has` returns False.
    """

    Settings: ClassVar[type[msgspec.Struct]]
    """A msgspec.Struct with the keys of the provider's table `[providers.NAME]`."""

    concurrency: int = 1
    """How many calls the daemon may make at a time, on several threads; at most 32.

    An attribute of the class or of the object, not a property.

    There is never more than one call at a time for one burst, of `observe`, or of
    `offers`. But bursts may be made and deleted while other bursts are, and while
    `observe` or `offers` runs.
    """

    @abc.abstractmethod
    def offers(self) -> Sequence[Offer]:
        """Return what can be made at some time, whether or not it is free now.

        Raises Transient or Refused.
        """

    @abc.abstractmethod
    def provision(self, spec: BurstSpec) -> None:
        """Begin to make the burst, or continue to make it. Returns promptly.

        Called again with an equal spec after a crash or a Transient: make what is
        missing, and nothing twice. Raises InsufficientCapacity, Transient, SpecRefused
        and Refused.
        """

    @abc.abstractmethod
    def observe(self) -> Sequence[BurstStatus]:
        """Return every burst of this owner and provider of which anything exists.

        Raises Transient or Refused if any of them cannot be read. Never returns a part
        of the bursts: the daemon may take a missing burst for gone.
        """

    @abc.abstractmethod
    def reap(self, burst_id: BurstId) -> None:
        """Delete all of the burst, or continue to delete it. Returns promptly.

        Called until it raises NotFound, which means that nothing of the burst exists
        any more: no process, no object, no file, nothing that costs. A return means
        that the deletion is requested but not confirmed. Also raises Transient and
        Refused.
        """

    @classmethod
    def modes(cls, settings: Any) -> tuple[BurstMode, ...]:
        """Return all modes that any of its offers has, from the settings alone.

        It is for callers that make no provider object, such as a check of files.
        """
        del settings
        return ("joined",)

    @classmethod
    def own_images(cls, settings: Any) -> bool:
        """Return whether any offer has `own_images`, from the settings alone."""
        del settings
        return False

    @classmethod
    def offer_names(cls, settings: Any) -> Collection[str]:
        """Return the names of all offers, from the settings alone.

        Empty if the settings do not tell them.
        """
        del settings
        return ()

    def place(self) -> str:
        """Return where bursts are made: cluster, project, directory; no secret.

        Called once, when the provider is made; returns at once, from its settings and
        files. If the text changes, bursts that were made before cannot be seen any
        more: a reload that changes it is refused while there are such bursts. Empty if
        the place is not known.

        A later version of a provider may tell more of a place only in parentheses:
        ` (...)` counts only if the records of the bursts have it too.
        """
        return ""

    def directories(self) -> Sequence[str]:
        """Return absolute paths of directories that all followers have.

        For a provider whose followers do not share the lead's files: `flux submit
        --burst` warns a user whose working directory is not below any of these. If
        empty, it warns nobody. Called once, as `place`.
        """
        return ()

    def access(self, burst_id: BurstId) -> Sequence[str]:
        """Return shell commands that give a person access to where a burst runs.

        For example, commands that write a kubeconfig. The person runs them one after
        the other with their own credentials, so they contain no secret. Returns at
        once, from the settings.
        """
        del burst_id
        return ()

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check all that can be checked without making anything.

        `lead` is the lead that followers would join, None if it cannot be reached.
        Each check returns one finding (`burst.model.finding`), also if it found nothing
        wrong. An error that this method raises is reported as the only finding.
        """
        del lead
        return ()

    def resize(self, spec: BurstSpec) -> None:
        """Grow or shrink the burst to the followers of `spec`. Returns promptly.

        Only for bursts that join the lead. Without this method the daemon makes another
        burst when jobs need more nodes, and keeps all nodes of a burst while any of
        them is used.

        `spec` is the spec of the burst's `provision` or of its last `resize` with other
        `hosts` and `ranks`: either the same with further ones at the end, or only the
        first of them. Followers that are in both specs are not touched. A later
        `provision` has the new hosts.

        To grow: start each further follower that does not exist yet, and none twice.
        Called until it returns, and again after a crash. Once all further followers
        have joined, the burst has grown.

        To shrink: end the followers after the last of `hosts`, on which nothing runs
        and nothing can start any more. Called again until `observe` lists none of them,
        which means that nothing of them exists: no process and nothing that costs. Like
        `reap`, it may use stronger means the longer that takes. It may be called to
        undo a growth that has not ended.

        Raises NotFound, and makes nothing, if nothing of the burst exists;
        InsufficientCapacity and SpecRefused if the burst cannot grow, which leaves it
        running as it is; Transient and Refused. `reap` also deletes what a growth has
        made.
        """
        raise NotImplementedError

    def force_reap(self, burst_id: BurstId) -> None:
        """Delete all of the burst, as `reap`, but do not wait for hosts without answer.

        Called only for a person (`burst down --force`) who knows that the host is dead,
        in place of `reap`, until it raises NotFound.
        """
        raise NotImplementedError

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        """Record an event of the burst where people look at its resources.

        For example, as an event of its Job, for a person who has kubectl and no access
        to the daemon. `text` is what `burst explain` shows, a sentence without a full
        stop. Called on a thread of its own, at the same time as other methods, and not
        for all events: nothing depends on it. Raises NotFound if the burst has no
        visible resource yet, and Transient: it is then called again, for at most a
        minute, so it must not record the same event twice. Raises Refused if it cannot
        work, and is then not called for a while.
        """
        raise NotImplementedError

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners and provider names in this provider's place.

        `burst gc --provider` needs it to delete what a lost lead has left: it makes a
        provider of this type with the owner and name of each burst, and calls its
        `reap`. Raises Transient or Refused.
        """
        raise NotImplementedError

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        """Start a small resource where followers run, and connect to the lead from it.

        Called only for a person (`burst doctor --probe`), as it makes a resource. With
        a `user`, a user name on this host, it also checks whether jobs of this guest
        could run there (`--as-user`).

        May wait as long as a follower may take to start, and calls `tell` with a line
        that says what it waits for. When it ends, also by KeyboardInterrupt, nothing is
        left, or what is left has the owner's tags and ends by itself. Raises
        ProviderError.
        """
        raise NotImplementedError

    def check(self, tell: Callable[[str], None]) -> Sequence[Finding]:
        """Test what a site wrote for this provider: make, list and delete a burst.

        Called only for a person (`burst provider check`), on a provider object whose
        owner is no lead's. Returns a finding for each rule, and calls `tell` with lines
        of progress. Nothing is left, or a finding says what. Raises ProviderError.
        """
        raise NotImplementedError

    def has(self, method: OptionalMethod) -> bool:
        """Return whether this optional method may be called.

        By default it may be called if it is overridden. A provider for which that
        depends on the settings overrides `has`, too. Called once, when the provider is
        made; returns at once.
        """
        found = getattr(self, method)
        return getattr(found, "__func__", found) is not getattr(Provider, method)
