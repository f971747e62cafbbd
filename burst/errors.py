# SPDX-License-Identifier: MIT
"""All errors. Each class stands for a reaction to the error, not for its source.

Every error has two parts: what happened, and what the reader can do about it. The
second may be empty only if the first leaves no question.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


class BurstError(Exception):
    """Base of all errors of this project whose text is for people."""

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.what}; {self.advice}" if self.advice else self.what


class ConfigError(BurstError):
    """A setting is wrong: do not start, or on a reload keep the old settings."""


class CertificateError(BurstError):
    """The CURVE certificate cannot be used: start no followers."""


class JobspecError(BurstError):
    """A jobspec cannot be read: do not act on that job, and say so in its memo."""


MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""The exceptions that occur while data of an unexpected form is read."""


class Denied(BurstError):
    """The caller is not allowed to do this: only the instance owner is."""


class CallsTooOften(BurstError):
    """A user calls the daemon too often: nothing was done. Try again later."""


class LeadError(BurstError):
    """The lead refused a call or cannot do it; other calls may succeed."""


class Unreadable(LeadError):
    """The lead cannot be read now: act on nothing that depends on it, read again."""


class LeadGone(Unreadable):
    """The connection to the lead is lost: close the handle and connect again."""


class Late(LeadError):
    """No answer came in time; the text says whether the request was dropped.

    Read the present state before the request is repeated.
    """


class JobRefused(LeadError):
    """The lead will never accept this job: do not submit it again."""


class ServiceTaken(LeadError):
    """Another daemon serves this lead: do not start."""


START_A_DAEMON = (
    "systemctl start burst where its unit is installed, else burst daemon -c FILE"
)
"""How a lead gets a daemon, in words."""


class NoDaemon(LeadError):
    """No daemon serves this lead: the command needs one."""


class StoreError(BurstError):
    """The store cannot be used: do not start, since nothing could be recorded."""


class RecordUnreadable(StoreError):
    """One record cannot be understood: quarantine its burst, never delete it."""


class RecordTooLarge(StoreError):
    """Records are too large for any store; nothing was written.

    `records` has their keys.
    """

    def __init__(self, sizes: Mapping[str, int], limit: int) -> None:
        found = ", ".join(f"{key} ({size} bytes)" for key, size in sizes.items())
        super().__init__(f"records larger than {limit} bytes: {found}")
        self.records = frozenset(sizes)


class ProviderError(BurstError):
    """Base of the errors that providers raise; the subclass decides the reaction."""


class InsufficientCapacity(ProviderError):
    """No capacity: end this burst, set the offer aside, place the job elsewhere.

    `offers` names other offers of the provider that lack capacity, too, for example
    because of a quota of the whole project: they are also set aside.
    """

    def __init__(
        self, what: str, advice: str = "", *, offers: Collection[str] = ()
    ) -> None:
        super().__init__(what, advice)
        self.offers = offers


class Transient(ProviderError):
    """It may work later: back off and try again.

    `retry_after` is the pause in seconds that the provider asks for; at least a second
    and at most five minutes are waited.
    """

    def __init__(
        self, what: str, advice: str = "", *, retry_after: float | None = None
    ) -> None:
        super().__init__(what, advice)
        self.retry_after = retry_after


class Refused(ProviderError):
    """Credentials, quota or settings are wrong: disable the provider for a while.

    The daemon logs how a person enables it at once.
    """


class SpecRefused(Refused):
    """This one burst cannot be made as requested: the daemon ends it with the reason.

    Other bursts of the provider go on. Only `provision` raises it, and `resize` for a
    growth, which is then undone. `by_rule` of `provision` means that a rule of the
    place forbids all bursts of the offer, whatever their name and size: then none of
    that offer is made for a while.
    """

    def __init__(self, what: str, advice: str = "", *, by_rule: bool = False) -> None:
        super().__init__(what, advice)
        self.by_rule = by_rule


class NotFound(ProviderError):
    """Nothing of the burst exists any more: it has been reaped."""
