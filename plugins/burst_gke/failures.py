# SPDX-License-Identifier: MIT
"""Maps errors of Google Cloud to those of `burst.errors`."""

from __future__ import annotations

import re

import msgspec

from burst.errors import InsufficientCapacity, ProviderError, Refused, Transient

# GKE gives no time to wait, and its operations take minutes.
_BUSY_AGAIN_S = 10.0
# Its rate limits are per minute.
_LIMITED_AGAIN_S = 60.0

_LACK = re.compile(
    r"stockout|does not have enough resources|resource_pool_exhausted"
    r"|quota(?! project)|resource_availability",
    re.IGNORECASE,
)
# GKE's and Compute Engine's words: IP_SPACE_EXHAUSTED, also _WITH_DETAILS, "IP space of
# ... is exhausted", "does not have available private IP space in 10.0.0.0/8".
_NO_ADDRESSES = re.compile(
    r"ip_space_exhausted|\bip (address )?space\b.*exhausted"
    r"|available (private )?ip space"
    r"|(insufficient|not have enough|not enough|no) free ip\b",
    re.IGNORECASE | re.DOTALL,
)
_RATE = re.compile(
    r"per (minute|second|100 seconds)|rate.?limit|concurrent|too many|too frequent",
    re.IGNORECASE,
)
_BUSY = re.compile(
    r"operation|please (wait|try)|in progress|currently|incompatible", re.IGNORECASE
)
_PERMISSION = re.compile(r"\b[a-z]+\.[a-zA-Z]+\.[a-zA-Z]+\b")
_PASSING = {
    *("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "CANCELLED"),
    *("INTERNAL", "UNKNOWN", "DATA_LOSS"),
}


class CloudFailure(msgspec.Struct, frozen=True):
    """The error of a call or of an operation."""

    code: str
    """Of google.rpc.Code, such as `PERMISSION_DENIED`."""
    message: str
    retry_after: float | None = None
    """Seconds, where the service says so."""

    def final_error(self, doing: str) -> ProviderError:
        """Return the error to raise if the call succeeded and its operation failed.

        Never Transient: a repeated call would request, and cost, the same again.
        """
        error = self.error(doing)
        if isinstance(error, Transient):
            return InsufficientCapacity(
                error.what, "try another zone or machine type, or later"
            )
        return error

    def error(self, doing: str) -> ProviderError:
        """Return what to raise; `doing` says what was tried, as in `to delete x`."""
        what = f"Google Cloud declined {doing}: {self.message or self.code}"
        if self.code in _PASSING:
            return Transient(what, retry_after=self.retry_after)
        if self.code == "RESOURCE_EXHAUSTED" and _RATE.search(self.message):
            again = self.retry_after or _LIMITED_AGAIN_S
            return Transient(what, retry_after=again)
        if _NO_ADDRESSES.search(self.message):
            return InsufficientCapacity(what, NO_ADDRESSES)
        if self.code == "FAILED_PRECONDITION" and _BUSY.search(self.message):
            again = self.retry_after or _BUSY_AGAIN_S
            return Transient(what, retry_after=again)
        if self.lack:
            return InsufficientCapacity(
                what, "try another zone or machine type, or raise the quota"
            )
        return Refused(what, self._advice())

    @property
    def lack(self) -> bool:
        """Whether it is a stock-out, a quota of the project, or a lack of addresses."""
        return self.code == "RESOURCE_EXHAUSTED" or is_lack(self.message)

    def _advice(self) -> str:
        if self.code == "UNAUTHENTICATED":
            return LOG_IN
        if self.code == "PERMISSION_DENIED":
            if "disabled" in self.message or "not been used" in self.message:
                return "gcloud services enable container.googleapis.com"
            found = _PERMISSION.search(self.message.replace("container.google", ""))
            permission = found[0] if found else "what it names"
            role = "roles/container.admin"
            if permission.startswith("iam."):
                role = "roles/iam.serviceAccountUser on the nodes' service account"
            return f"grant {permission} to this account, as {role} does"
        return "correct the settings of the provider"


NO_ADDRESSES = (
    "have old clusters and node pools deleted, or name a subnetwork or pods_range with"
    " more free addresses: a node takes a /24 of the pods' range, by default"
)
LOG_IN = (
    "run with Workload Identity or on a VM with a service account, or run"
    " gcloud auth application-default login"
)


def is_lack(message: str) -> bool:
    """Return whether a message reports a stock-out, a quota, or a lack of addresses."""
    return bool(_LACK.search(message) or _NO_ADDRESSES.search(message))
