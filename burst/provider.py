# SPDX-License-Identifier: MIT
"""The plug-in interface of providers, which make and delete followers.

Four methods. Write a subclass of `Provider` with them, name it under the entry point
group `burst.providers`, and run `burst.testing.ProviderContract` on it.

    class MyProvider(Provider):
        Settings = MySettings            # a msgspec.Struct: the keys of its table

        def __init__(self, name: str, settings: MySettings, owner: str) -> None: ...

What the daemon assumes of a provider:

* It is **eventually consistent**: what was provisioned may be missing from `observe`
  for a while, what was reaped may linger there.
* It is **idempotent** by `burst_id`: the daemon repeats any call whose answer it lost.
* It **tags** everything it makes with owner, its own name and burst id, before or as it
  makes it, so that two tables of one type see each its own, and that `observe` finds
  half-built things after a crash too.
* It **may block**: each provider has a worker of its own. It never waits for progress
  though; progress is what `observe` is for.
* It is **called from one thread** at a time, unless it says more (`concurrency`).

The error that it raises says what the daemon does (`burst.errors`).
InsufficientCapacity: it ends this burst and does not try the offer for a while.
Transient: it calls again later. SpecRefused, from `provision`: it ends this burst and
no other. Refused: it disables the provider, and tries it again after a while. NotFound
from `reap`: nothing is left. Anything else counts as Transient, with its traceback in
the log; three in a row open the breaker.

All that an author needs of this project is imported from here, from `burst.kits` and
from `burst.testing`: what `__all__` lists is kept from one release to the next, or its
change is in CHANGELOG.md. Other modules may change at any time.
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
    """How many nodes there are for all bursts of it together; 0 if that is not known.
    For more the provider is not asked."""
    price: float = 0.0
    """Per node and hour, in the site's currency; 0 for free."""
    fee: float = 0.0
    """Per burst and hour, however many nodes it has, such as of a cluster that is made
    for it."""
    join_time: float = 0.0
    """Seconds from `provision` to followers joining, as far as is known; 0 if not."""
    lifetime: float = 0.0
    """Seconds that a burst of it lives at most, such as a partition's time limit; 0 for
    no limit. The daemon sets `BurstSpec.lease_end` by it, or by `[deadlines] lease` if
    that is less, and drains the burst before."""
    modes: tuple[BurstMode, ...] = ("joined",)
    """What bursts of it can be; the first is what they are unless the job says."""
    spot: bool = False
    """Whether the cloud may take nodes of it back at any time; it is cheap for that."""
    own_images: bool = False
    """Whether a burst of it may have a container image of its own."""
    guests: bool = True
    """Whether jobs of users other than the lead's owner can run on its followers, where
    the lead serves such (`LeadIdentity.access`). If not, none is made for them."""


class BurstSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All that a provider needs to make one burst. It holds no secret.

    `hosts[i]` must join as rank `ranks[i]`: start its broker with that host name. The
    certificate is a path in `lead`; where followers cannot read that path, the
    provider brings the content there by a channel that only they can read.

    With a `program` the burst is isolated: it joins nothing, has no `ranks`, and its
    hosts are an instance of their own, with a certificate that the provider makes. The
    first is its lead and runs the program once: a program that was started is never
    started again, whatever fails.
    """

    burst_id: BurstId
    owner: str
    offer: str
    hosts: tuple[str, ...]
    ranks: tuple[int, ...]
    shape: Shape
    """What the lead's R declares for each of these nodes: the least they must have."""
    lead: LeadIdentity
    lease_end: float = 0.0
    """Seconds since the epoch; 0 for no end. Past it the burst is not needed, even if
    the daemon is gone: a provider that can should end the burst by itself then."""
    userids: tuple[int, ...] = ()
    """Users of the lead whose jobs it is made for, such as for accounting; empty if a
    person requested it ahead of jobs. Jobs of others may run there later, as `[plan]
    share_users` says."""
    banks: tuple[str, ...] = ()
    """Those that pay for the jobs it is made for, such as for accounting."""
    queues: tuple[str, ...] = ()
    """Of these jobs; none where the lead's queue has no name."""
    program: Program | None = None
    """What it runs; only for providers with an offer of mode `isolated`."""
    image: str = ""
    """The followers' container image, in place of that of the provider's settings; only
    for offers with `own_images`. Empty for that of the settings."""


class Phase(enum.Enum):
    """The state of a burst or a follower, as its provider sees it."""

    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    ENDING = "ending"


class Failure(enum.Enum):
    """Why a burst is FAILED, where that changes what the daemon does."""

    OTHER = "other"
    CAPACITY = "capacity"
    REFUSED = "refused"
    """A rule of the place forbids such a burst, as one that denies its pods: as
    `SpecRefused`."""
    RECLAIMED = "reclaimed"
    """The cloud took its nodes back: it ends as reclaimed, which is no failure of the
    provider or the offer."""


class FollowerStatus(msgspec.Struct, frozen=True):
    """One follower. `why` is a few words where it is not simply running."""

    host: str
    phase: Phase
    why: str = ""
    reclaimed: bool = False
    """Whether its place was taken for others, as the cloud takes back nodes of spot
    offers and pods of a higher priority preempt, and it runs nowhere else yet. It is
    PENDING if the provider has it started again, as a Job in Kubernetes does: the burst
    ends after `[deadlines] rejoin`. FAILED if not: it ends at once."""
    lost: str = ""
    """What ended it, without a wish of the daemon's, after it had been started: an
    eviction, a dead node, a person. A few words, told until it runs again."""


class InstanceStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What is seen of an isolated burst's own instance."""

    online: bool = False
    """Whether all its brokers are up, so that its program was begun."""
    access: str = ""
    """How a person gets at it: a command, or an address."""
    exit_status: int | None = None
    """Of the program, once it has ended. It must be seen until the burst is reaped."""
    output: str = ""
    """The end of what the program wrote, once it has ended: OUTPUT_MOST bytes."""


OUTPUT_MOST = 256 * 1024
"""How much of an isolated burst's output is kept; bytes of UTF-8, from its end."""


class BurstStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider sees of one burst, half-built ones too.

    RUNNING means that all followers were started, not that any has joined.
    """

    burst_id: BurstId
    phase: Phase
    followers: tuple[FollowerStatus, ...] = ()
    why: str = ""
    """One sentence for the person who asks why this takes so long, or why it failed.
    The end of a log that explains it belongs here. No secret does."""
    failure: Failure = Failure.OTHER
    instance: InstanceStatus | None = None
    """Of an isolated burst; None of one that joins."""


class OwnedBurst(msgspec.Struct, frozen=True, kw_only=True):
    """A burst of any owner, by the tags of what exists of it."""

    owner: str
    provider: str
    """The name of the provider that made it, which may be of another daemon."""
    burst_id: BurstId
    lease_end: float = 0.0
    """Seconds since the epoch; 0 for no end, or where no tag tells it."""


OptionalMethod = Literal[
    "resize", "force_reap", "record_event", "list_all", "probe", "check"
]
"""Methods that are called only where a provider `has` them."""
OPTIONAL_METHODS: tuple[OptionalMethod, ...] = get_args(OptionalMethod)


class Provider(abc.ABC):
    """Makes, observes and deletes bursts.

    A provider overrides the four abstract methods. The others are optional: their
    defaults say that there is nothing to tell, or are never called, as `has` says.
    """

    Settings: ClassVar[type[msgspec.Struct]]
    """The keys of its table."""

    concurrency: int = 1
    """How many calls may be made at a time, by several threads; at most 32 are.

    Never for the same burst, and never twice at a time for `observe` or `offers`. So a
    burst is made and deleted while others are, and while all are listed.
    """

    @abc.abstractmethod
    def offers(self) -> Sequence[Offer]:
        """Return what can be made at all, now or later; not what is free now.

        Raises Transient or Refused.
        """

    @abc.abstractmethod
    def provision(self, spec: BurstSpec) -> None:
        """Begin to make the burst, or go on. Returns promptly.

        Called again with an equal spec after a crash or a Transient: make what is
        missing, nothing twice. Raises InsufficientCapacity, Transient, SpecRefused and
        Refused.
        """

    @abc.abstractmethod
    def observe(self) -> Sequence[BurstStatus]:
        """Return every burst of our owner of which anything exists.

        Raises Transient or Refused; never returns a part because the rest could not
        be read, since what is missing may be taken for gone.
        """

    @abc.abstractmethod
    def reap(self, burst_id: BurstId) -> None:
        """Delete all of the burst, or go on deleting. Returns promptly.

        Called until it raises NotFound, which says that nothing of it exists any
        more: no process, no object, no file, nothing that costs. Returning means:
        requested, not yet confirmed. Also raises Transient and Refused.
        """

    @classmethod
    def modes(cls, settings: Any) -> tuple[BurstMode, ...]:
        """Return all that is in `modes` of some offer, by the settings alone.

        It is for what makes no provider, such as a check of files.
        """
        del settings
        return ("joined",)

    @classmethod
    def own_images(cls, settings: Any) -> bool:
        """Return whether some offer has `own_images`, as `modes`."""
        del settings
        return False

    @classmethod
    def offer_names(cls, settings: Any) -> Collection[str]:
        """Return the names of all offers, as `modes`; empty if only `offers` knows."""
        del settings
        return ()

    def place(self) -> str:
        """Return where bursts are made: cluster, project, directory. No secret.

        Asked once, when the provider is made; answers at once, from its settings and
        files. Another text means that bursts made before cannot be seen from here: a
        reload that brings it is refused while there are some. Empty where it is not
        known.
        """
        return ""

    def directories(self) -> Sequence[str]:
        """Return absolute paths that all followers have; asked once, as `place`.

        For a provider whose followers do not share the lead's files: `flux submit
        --burst` tells a user whose working directory is below none of them. With none
        nobody is told.
        """
        return ()

    def access(self, burst_id: BurstId) -> Sequence[str]:
        """Return how a person gets at what a burst runs in: commands for a shell.

        Such as those that write a kubeconfig. The person runs them one after the other,
        with credentials of their own, so no secret is in them. Answers at once, from
        the settings.
        """
        del burst_id
        return ()

    def examine(self, lead: LeadIdentity | None) -> Sequence[Finding]:
        """Check all that can be checked without making anything.

        `lead` is the lead that followers would join, None where it cannot be reached.
        Each thing that was checked is one finding (`burst.model.finding`), also if it
        is as it should be. An error that it raises is reported as the only finding.
        """
        del lead
        return ()

    def resize(self, spec: BurstSpec) -> None:
        """Have the burst consist of the followers of `spec`. Returns promptly.

        Of bursts that join the lead only. Without it the daemon makes another burst
        where jobs need more nodes, and keeps all nodes of one as long as some are used.

        `spec` is that of the burst's `provision` or of its last `resize`, with other
        `hosts` and `ranks`: either these with further ones behind them, or the first
        of them. Followers that are in both are not touched. What is provisioned again
        after it has the new hosts.

        To grow: start those that are missing of the further ones, nothing twice. It is
        called until it returns, and again after a crash. Once all of them have joined,
        the burst has grown.

        To shrink: end those behind the last of `hosts`, on which nothing runs and
        nothing can start any more. It is called again until `observe` lists none of
        them, which says that nothing of them exists, no process and nothing that
        costs. As `reap`, it may do more the longer that takes. It may be called to take
        back a growth that has not ended.

        Raises NotFound where nothing of the burst exists, and makes nothing then;
        InsufficientCapacity and SpecRefused for a growth that cannot be had, which
        leave the burst as it is and let it go on; Transient and Refused. `reap`
        deletes what a growth has made, too.
        """
        raise NotImplementedError

    def force_reap(self, burst_id: BurstId) -> None:
        """As `reap`, but wait for no host that does not answer.

        Only a person asks for it (`burst down --force`), who knows that the host is
        dead. Called in place of `reap` until it raises NotFound.
        """
        raise NotImplementedError

    def record_event(self, burst_id: BurstId, event: Event, text: str) -> None:
        """Note that this happened to the burst where people see what it is.

        Such as an event of its Job, for who has kubectl and no access to the daemon.
        `text` is what `burst explain` says, a sentence without a full stop. Called
        beside other methods, from a thread of its own, and not for all events: nothing
        depends on it. Raises NotFound where nothing of the burst can be seen yet, and
        Transient; it is then called again, for a minute at most, so an event that is
        there already is not noted twice. Raises Refused where it will not work, and is
        then left alone for a while.
        """
        raise NotImplementedError

    def list_all(self) -> Sequence[OwnedBurst]:
        """Return the bursts of all owners and names in the place of the settings.

        `burst gc --provider` needs it, which deletes what a lead left that is lost. It
        then makes a provider of this type with the owner and name of each, and calls
        its `reap`. Raises Transient or Refused.
        """
        raise NotImplementedError

    def probe(
        self, lead: LeadIdentity, tell: Callable[[str], None], user: str = ""
    ) -> Sequence[Finding]:
        """Start something small, where followers run, that connects to the lead.

        Only a person asks for it (`burst doctor --probe`), as it makes something. With
        a `user`, a name of the host that asks, it also tells whether this guest's jobs
        could run there (`--as-user`).

        May wait as long as a follower may take to be started, and calls `tell` with a
        line that says for what. When it ends, also by KeyboardInterrupt, nothing is
        left, or what is left has our tags and ends by itself. Raises ProviderError.
        """
        raise NotImplementedError

    def check(self, tell: Callable[[str], None]) -> Sequence[Finding]:
        """Test what a site wrote for it: make a burst, list it and delete it.

        Only a person asks for it (`burst provider check`), of a provider object with an
        owner that no lead has. Returns a finding for each rule. `tell` is called with a
        line of progress. Nothing is left, or a finding says what. Raises ProviderError.
        """
        raise NotImplementedError

    def has(self, method: OptionalMethod) -> bool:
        """Return whether this optional method may be called.

        By default if it is overridden; one for which that depends on its settings
        overrides this too. Asked once, when the provider is made; answers at once.
        """
        found = getattr(self, method)
        return getattr(found, "__func__", found) is not getattr(Provider, method)
