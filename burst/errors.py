# SPDX-License-Identifier: MIT
"""What can go wrong. Each class names the decision it causes, not the layer it is from.

Every error has two parts: what happened, and what the reader can do about it. The
second may be empty only where the first leaves no question.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping


class BurstError(Exception):
    """Base of all errors of this project that a person is meant to read."""

    def __init__(self, what: str, advice: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.advice = advice

    def __str__(self) -> str:
        return f"{self.what}; {self.advice}" if self.advice else self.what


class ConfigError(BurstError):
    """A setting is wrong: do not start, or on a reload keep the old settings."""


class CertificateError(BurstError):
    """The CURVE certificate cannot be used: start nothing that would have to join."""


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
"""What reading something raises that is not of the shape that its reader expects."""


class Denied(BurstError):
    """The caller may not do that: only the instance owner may."""


class CallsTooOften(BurstError):
    """A user calls the daemon too often: nothing was done. Try again later."""


class LeadError(BurstError):
    """The lead refused or cannot do something; this call failed, others may not."""


class Unreadable(LeadError):
    """The lead cannot be read now: act on nothing that depends on it, read again."""


class LeadGone(Unreadable):
    """The connection to the lead is lost: close the handle and connect again."""


class Late(LeadError):
    """No answer came in time, and what was asked for may yet be done: ask what is there
    before it is asked for again.
    """


class ServiceTaken(LeadError):
    """Another daemon serves this lead: do not start."""


class NoDaemon(LeadError):
    """No daemon serves this lead: the command needs one."""


class StoreError(BurstError):
    """The store cannot be used: do not start, since nothing could be recorded."""


class RecordUnreadable(StoreError):
    """One record cannot be understood: quarantine its burst, never delete it."""


class RecordTooLarge(StoreError):
    """Records too large for any store; nothing was written. `records`: their keys."""

    def __init__(self, sizes: Mapping[str, int], limit: int) -> None:
        found = ", ".join(f"{key} ({size} bytes)" for key, size in sizes.items())
        super().__init__(f"records larger than {limit} bytes: {found}")
        self.records = frozenset(sizes)


class ProviderError(BurstError):
    """Base of what a provider raises on purpose; the subclass is the decision."""


class InsufficientCapacity(ProviderError):
    """No capacity: end this burst, set the offer aside, place the job elsewhere.

    `offers` names other offers of the provider that lack it, too, such as by a quota of
    the whole project: they are set aside with it.
    """

    def __init__(
        self, what: str, advice: str = "", *, offers: Collection[str] = ()
    ) -> None:
        super().__init__(what, advice)
        self.offers = offers


class Transient(ProviderError):
    """It may work later: back off and try again, after `retry_after` s if given.

    From a second to an hour.
    """

    def __init__(
        self, what: str, advice: str = "", *, retry_after: float | None = None
    ) -> None:
        super().__init__(what, advice)
        self.retry_after = retry_after


class Refused(ProviderError):
    """Credentials, quota or settings: disable the provider, say how to enable it."""


class SpecRefused(Refused):
    """This one burst cannot be made as requested: the daemon ends it with the reason.

    Other bursts of the provider go on. Of `provision` only. `by_rule`: a rule of the
    place forbids it whatever its name and size, so none of its offer is made for a
    while.
    """

    def __init__(self, what: str, advice: str = "", *, by_rule: bool = False) -> None:
        super().__init__(what, advice)
        self.by_rule = by_rule


class NotFound(ProviderError):
    """Nothing of that burst exists any more: reaping it is done."""
