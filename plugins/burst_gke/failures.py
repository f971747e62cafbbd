# SPDX-License-Identifier: MIT
"""What errors of Google Cloud mean, in the classes of `burst.errors`.

A reason decides first: one of `ErrorInfo`, the code of a condition, or a code in GKE's
message, such as Compute Engine's in `Current errors: [GCE_STOCKOUT]: Instance ...`. The
name of a quota, a permission or a constraint in Google's form counts as a reason, too.
Without a reason, a google.rpc code that says that the error passes decides, or a time
after which to try again; then words of the message, then any other code. What none of
these explains is Transient.

Sources: google/api/error_reason.proto, google/rpc/code.proto, the documentation of GKE
("Troubleshoot cluster creation") and of Compute Engine ("Troubleshoot resource
availability errors", "Allocation quotas"), and messages as users reported them.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Mapping

import msgspec

from burst.errors import InsufficientCapacity, ProviderError, Refused, Transient
from burst.kits.shorten import shorten

# GKE gives no time to wait, and its operations take minutes.
_BUSY_AGAIN_S = 10.0
# Its rate limits are per minute.
_LIMITED_AGAIN_S = 60.0
_LONGEST = 1000


class Meaning(enum.Enum):
    """What an error means. If several apply, the first of these counts."""

    API_DISABLED = enum.auto()
    NO_BILLING = enum.auto()
    POLICY = enum.auto()
    """A constraint of the organization, which also applies to the next request."""
    NO_PERMISSION = enum.auto()
    NO_CREDENTIALS = enum.auto()
    INVALID = enum.auto()
    LIMITED = enum.auto()
    """Too many requests or operations at a time."""
    NO_ADDRESSES = enum.auto()
    QUOTA = enum.auto()
    STOCKOUT = enum.auto()
    BUSY = enum.auto()
    """Another operation runs."""
    PASSING = enum.auto()


LASTING = (
    Meaning.API_DISABLED,
    Meaning.NO_BILLING,
    Meaning.POLICY,
    Meaning.NO_PERMISSION,
    Meaning.NO_CREDENTIALS,
    Meaning.INVALID,
)
"""Errors that the next request would get, too."""
LACKS = (Meaning.NO_ADDRESSES, Meaning.QUOTA, Meaning.STOCKOUT)

# By the reason, the first pattern that fits. Older APIs spell it `quotaExceeded`.
_BY_REASON = (
    (re.compile(r"RATE_LIMIT|CONCURRENT|OVERLOADED"), Meaning.LIMITED),
    (re.compile(r"HAS_OPERATION|NOT_READY"), Meaning.BUSY),
    (re.compile(r"IP_SPACE|SUBNET.*EXHAUSTED"), Meaning.NO_ADDRESSES),
    (re.compile(r"QUOTA_EXCEEDED"), Meaning.QUOTA),
    (re.compile(r"STOCKOUT|POOL_EXHAUSTED|RESOURCE_AVAILAB"), Meaning.STOCKOUT),
    (re.compile(r"BILLING"), Meaning.NO_BILLING),
    (re.compile(r"SERVICE_DISABLED|ACCESS_NOT_CONFIGURED"), Meaning.API_DISABLED),
    (re.compile(r"POLICY_VIOLAT|ORG_POLICY|RESTRICTION_VIOLAT"), Meaning.POLICY),
    (
        re.compile(
            r"PERMISSION_DENIED|PERMISSIONS?_ERROR|SCOPE_INSUFFICIENT|ACCOUNT_DELETED"
            r"|SUSPENDED"
        ),
        Meaning.NO_PERMISSION,
    ),
)
# By the code of google.rpc, if the words below do not decide.
_BY_CODE = {
    "UNAUTHENTICATED": Meaning.NO_CREDENTIALS,
    "PERMISSION_DENIED": Meaning.NO_PERMISSION,
    "RESOURCE_EXHAUSTED": Meaning.STOCKOUT,
    "FAILED_PRECONDITION": Meaning.BUSY,
    "INVALID_ARGUMENT": Meaning.INVALID,
    "OUT_OF_RANGE": Meaning.INVALID,
    "UNIMPLEMENTED": Meaning.INVALID,
    "NOT_FOUND": Meaning.INVALID,
}
# Codes after which a repeated call may succeed, whatever the words.
_PASSING = ("UNAVAILABLE", "DEADLINE_EXCEEDED", "ABORTED", "CANCELLED", "DATA_LOSS")

# Text of this form in a message is a code or a name, not a word.
_TOKEN = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_PERMISSION = re.compile(
    r"\b(?:[Rr]equired|[Pp]ermission)\b\W+"
    r"((?!\w+\.google)[a-z]+\.[a-zA-Z]+\.[a-zA-Z]+)\b"
)
# A permission that is named in another way, as "ask for iam.serviceAccounts.actAs".
_ANY_PERMISSION = re.compile(
    r"(?<![\w./])(?!\w+\.google)[a-z]+\.[a-zA-Z]+\.[a-zA-Z]+\b(?!\.)"
)
_CONSTRAINT = re.compile(
    r"\b(?:constraints|customConstraints)/[\w.]+\w"
    r"|(?<=\b[Cc]onstraint )[\w./]+(?= violated)"
)
# Quota 'CPUS' exceeded; Insufficient regional quota to satisfy request: resource
# "CPUS"; quota metric 'compute.googleapis.com/n2_cpus'; 'CPUS-per-project-region'.
_METRIC = re.compile(
    r"\b[Qq]uota(?: limit| metric)? (?:"
    r"[\"'`\\]+(?:[\w.]+/)?([A-Za-z][\w-]+)[\"'`\\]"
    r"|([A-Z][A-Z0-9]*(?:[_-][A-Z0-9]+)+)\b"
    r"|([A-Za-z][A-Za-z0-9]*(?:[_-][A-Za-z0-9]+)+) (?:has been )?exceeded)"
    r"|\b[Qq]uota.{0,80}?\b[Rr]esource:? (?:"
    r"[\"'`\\]+([A-Za-z][\w-]{2,})\b|([A-Z][A-Z0-9_-]{2,})\b)"
)
# A quota with such a name limits requests, and is free again by itself.
_REQUESTS = re.compile(r"REQUESTS|QUERIES|PER_MINUTE|PER_SECOND")
_SERVICE = re.compile(r"\b([a-z]+\.googleapis\.com)\b")

# Words that decide without a reason, the first that fit; with these codes, or with any.
_BY_WORDS = (
    (
        re.compile(
            r"per (minute|second|100 seconds)|rate.?limit|concurrent|too frequent"
            r"|too many",
            re.IGNORECASE,
        ),
        Meaning.LIMITED,
        ("RESOURCE_EXHAUSTED",),
    ),
    (
        # "IP space of ... is exhausted", "does not have available private IP space in
        # 10.0.0.0/8".
        re.compile(
            r"\bip (address )?space\b.*exhausted|available (private )?ip space"
            r"|(insufficient|not have enough|not enough|no) free ip\b",
            re.IGNORECASE | re.DOTALL,
        ),
        Meaning.NO_ADDRESSES,
        (),
    ),
    (
        re.compile(
            r"quota\b.{0,60}\bexceeded|(insufficient|exceed\w*)\b.{0,40}\bquota",
            re.IGNORECASE,
        ),
        Meaning.QUOTA,
        (),
    ),
    (
        re.compile(r"stockout|does not have enough resources", re.IGNORECASE),
        Meaning.STOCKOUT,
        (),
    ),
    (
        # A state of a network or a cluster that does not end by itself.
        re.compile(r"\blegacy\b|not supported|unsupported|does not support"),
        Meaning.INVALID,
        ("FAILED_PRECONDITION",),
    ),
    (re.compile(r"\borg(anization('s)?)? policy\b", re.IGNORECASE), Meaning.POLICY, ()),
    (
        # "The user does not have access to service account ...".
        re.compile(r"does not have (access|permission)|\bgrant you\b", re.IGNORECASE),
        Meaning.NO_PERMISSION,
        ("FAILED_PRECONDITION", "INVALID_ARGUMENT"),
    ),
    (
        re.compile(r"\bbilling\b", re.IGNORECASE),
        Meaning.NO_BILLING,
        ("PERMISSION_DENIED", "FAILED_PRECONDITION"),
    ),
    (
        re.compile(r"API has not been used|API .*\bis disabled", re.IGNORECASE),
        Meaning.API_DISABLED,
        (),
    ),
)


class CloudFailure(msgspec.Struct, frozen=True):
    """The error of a call, of an operation, or in the conditions of a resource."""

    code: str
    """Name of a google.rpc.Code, such as `PERMISSION_DENIED`."""
    message: str
    retry_after: float | None = None
    """Seconds to wait; None if the service does not tell."""
    reasons: tuple[str, ...] = ()
    """Reasons of `google.rpc.ErrorInfo`, or the codes of conditions."""
    metadata: Mapping[str, str] = {}
    """Metadata of `google.rpc.ErrorInfo`."""

    def error(self, doing: str) -> ProviderError:
        """Return the error to raise; `doing` is what was tried, as in `to delete x`."""
        return self.as_error(f"Google Cloud declined {doing}: {self.words}")

    @property
    def words(self) -> str:
        """Its message, or else its code, with the reasons that are not in it."""
        said = shorten(self.message or self.code, _LONGEST)
        others = [reason for reason in self.reasons if reason not in said]
        return f"{said} ({', '.join(others)})" if others else said

    def as_error(self, what: str) -> ProviderError:
        """Return the error to raise; `what` is its text."""
        meaning = self.meaning
        if meaning in LASTING:
            return Refused(what, self._advice())
        if meaning in LACKS:
            return InsufficientCapacity(what, self._advice())
        again = {Meaning.LIMITED: _LIMITED_AGAIN_S, Meaning.BUSY: _BUSY_AGAIN_S}
        return Transient(what, retry_after=self.retry_after or again.get(meaning))

    def final_error(self, doing: str) -> ProviderError:
        """Return the error to raise if the call succeeded and its operation failed.

        Never Transient: a repeated call would request, and cost, the same again.
        """
        error = self.error(doing)
        if isinstance(error, Transient):
            return InsufficientCapacity(error.what, _ELSEWHERE)
        return error

    @property
    def meaning(self) -> Meaning:
        """What it means, by the order that the module's docstring tells."""
        found = {m for reason in self._all_reasons() for m in _of_reason(reason)}
        if self._constraint:
            found.add(Meaning.POLICY)
        if self._metric and not found & {Meaning.LIMITED}:
            of_requests = _REQUESTS.search(_normal(self._metric))
            found.add(Meaning.LIMITED if of_requests else Meaning.QUOTA)
        if _PERMISSION.search(self.message):
            found.add(Meaning.NO_PERMISSION)
        if found:
            return min(found, key=lambda meaning: meaning.value)
        if self.code in _PASSING or self.retry_after is not None:
            limited = self.code == "RESOURCE_EXHAUSTED"
            return Meaning.LIMITED if limited else Meaning.PASSING
        for words, meaning, codes in _BY_WORDS:
            if words.search(self.message) and (not codes or self.code in codes):
                return meaning
        return _BY_CODE.get(self.code, Meaning.PASSING)

    @property
    def everywhere(self) -> bool:
        """Whether it is a quota of the whole project, so that no other region helps."""
        if self.meaning is not Meaning.QUOTA:
            return False
        place = self.metadata.get("quota_location", "")
        of_all = "_ALL_REGIONS" in _normal(self._metric)
        told = of_all or "globally" in self.message
        return told or place == "global"

    @property
    def of_gpus(self) -> bool:
        """Whether the quota that is used up is one of GPUs."""
        return "GPU" in _normal(self._metric)

    def _all_reasons(self) -> list[str]:
        return [*self.reasons, *_TOKEN.findall(self.message)]

    @property
    def _constraint(self) -> str:
        known = self.metadata.get("customConstraints", "")
        found = _CONSTRAINT.search(self.message)
        return known or (found[0] if found else "")

    @property
    def _metric(self) -> str:
        """The quota that is used up, such as `SSD_TOTAL_GB`; empty if none is named."""
        found = _METRIC.search(self.message)
        return next(filter(None, found.groups())) if found else ""

    def _advice(self) -> str:
        meaning = self.meaning
        if meaning is Meaning.QUOTA:
            return _of_quota(self._metric, everywhere=self.everywhere)
        if meaning is Meaning.POLICY:
            rule = self._constraint or "the policy that it names"
            external = "; for this one: private nodes (network_config in request)"
            return (
                f"change the settings of the provider so that {rule} holds, or have an"
                " administrator of the organization exempt the project from it"
                + (external if "vmExternalIp" in rule else "")
            )
        if meaning is Meaning.NO_PERMISSION:
            return self._grant()
        if meaning is Meaning.API_DISABLED:
            said = _SERVICE.findall(self.message)
            known = [each for each in said if not each.startswith("console")]
            service = self.metadata.get("service") or next(iter(known), _GKE)
            return f"gcloud services enable {service}"
        return {
            Meaning.NO_BILLING: _PAY,
            Meaning.NO_CREDENTIALS: LOG_IN,
            Meaning.NO_ADDRESSES: _NO_ADDRESSES,
            Meaning.STOCKOUT: _ELSEWHERE,
        }.get(meaning, "correct the settings of the provider")

    def _grant(self) -> str:
        found = _PERMISSION.search(self.message)
        named = found[1] if found else ""
        other = _ANY_PERMISSION.search(self.message)
        named = self.metadata.get("permission") or named or (other[0] if other else "")
        role, to = "roles/container.admin", "this account"
        if named.startswith("iam.") or "serviceAccountUser" in self.message:
            role = "roles/iam.serviceAccountUser on the nodes' service account"
        if named.startswith("compute."):
            to = "this account, or to GKE's service agent if this account has it"
            role = "roles/container.serviceAgent"
        return f"grant {named or 'what it names'} to {to}, as {role} does"


_GKE = "container.googleapis.com"
_ELSEWHERE = "try another zone or machine type, or try again later"
_PAY = "link the project to an open billing account: gcloud billing projects link"
_NO_ADDRESSES = (
    "delete old clusters and node pools, or name in request a network range with more"
    " free addresses: a node takes a /24 of the pods' range, by default"
)
LOG_IN = (
    "run with Workload Identity or on a VM with a service account, or run"
    " gcloud auth application-default login"
)
# What helps other than a higher quota, by what is in the quota's name.
_LESS = (
    (re.compile(r"_TOTAL_GB"), "set a smaller disk_size_gb in request"),
    (re.compile(r"ADDRESSES"), "make nodes private (network_config in request)"),
    (re.compile(r"VM_FAMILY|_CPUS(?=_PER_|\Z)"), "use another family of machines"),
)


def _of_reason(reason: str) -> list[Meaning]:
    # "conditionNotMet" alone is no policy: a policy's error names the constraint.
    name = _CAMEL.sub("_", reason).upper()
    return [meaning for form, meaning in _BY_REASON if form.search(name)][:1]


def _normal(metric: str) -> str:
    """Return a quota's name as Compute Engine's API spells it: NVIDIA_L4_GPUS."""
    return metric.upper().replace("-", "_")


def _of_quota(metric: str, *, everywhere: bool) -> str:
    """Return advice for a quota that is used up."""
    raised = f"raise the quota {metric}".rstrip()
    if everywhere:
        return (
            f"{raised}, or burst less: the quota is the project's, so another region"
            " does not help"
        )
    less = [text for form, text in _LESS if form.search(_normal(metric))]
    ways = " or ".join([*less, "try another region"])
    return f"{raised}, or {ways}"
