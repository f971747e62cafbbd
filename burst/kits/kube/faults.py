# SPDX-License-Identifier: MIT
"""The errors that answers of the API server become.

Sources: the Kubernetes API conventions ("Response Status Kind"), and the answers of
1.34. A text is read only where one reason has two meanings, and where a policy wrote it
(`denials.py`).
"""

from __future__ import annotations

import re

import msgspec

from burst.decode import from_json
from burst.errors import (
    InsufficientCapacity,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)
from burst.kits.kube.access import Access
from burst.kits.kube.connect import ApiResponse
from burst.kits.kube.denials import Why, is_judged, quote, read_denial
from burst.kits.kube.kinds import MINICLUSTER, SECRET, Kind
from burst.kits.shorten import shorten

_MOST = 600
# Bad request, request entity too large, unprocessable entity: about this one object.
_CONTENT = (400, 413, 422)
# Of the authorizer; behind it, if anything, what a cloud's authorizer adds.
_DENIED = re.compile(
    r"\bUser \".*?\" cannot \w+\b"
    r"(?:.*?(?:in the namespace \"[^\"]*\"|at the cluster scope)(?::\s*(.+))?)?",
    re.DOTALL,
)
# Of the admission plug-in OwnerReferencesPermissionEnforcement.
_OWNER = "cannot set blockOwnerDeletion"
# A conflict, an old list, too many requests.
_AGAIN = (409, 410, 429)
# Of a Secret, whose value a message may quote.
_WITHHELD = "(in words that may quote the Secret, and are not shown)"
_MAKES = ("create", "patch")
_WRITES = (*_MAKES, "delete")
# etcd's error for an object over its limit, which is lower than the API server's.
_TOO_LARGE = ("etcdserver: request is too large", "message larger than max")


class NoRight(Refused):
    """RBAC denies it. A namespace that is deleted takes its Roles with it."""


class NoNamespace(Refused):
    """The namespace does not exist, so nothing in it does."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is no namespace {name}",
            f"kubectl create namespace {name}, and apply its Roles again",
        )


class ApiCall(msgspec.Struct, frozen=True):
    """A request to the API server, in the words of RBAC."""

    access: Access
    verb: str
    kind: Kind | None = None
    namespace: str = ""
    name: str = ""
    part: str = ""
    """A subresource, such as `log`."""

    def __str__(self) -> str:
        if self.kind is None:
            return self.verb
        part = f"/{self.part}" if self.part else ""
        name = f" {self.name}" if self.name else ""
        return f"{self.verb} {self.kind.resource}{part}{name}" + (
            f" in namespace {self.namespace}" if self.namespace else ""
        )


class _Details(msgspec.Struct, rename="camel"):
    name: str = ""
    kind: str = ""
    retry_after_seconds: float | None = None
    causes: list[dict[str, str]] | None = None


class _Status(msgspec.Struct):
    reason: str = ""
    message: str = ""
    details: _Details | None = None


def is_absent(answer: ApiResponse) -> bool:
    """Return whether the object does not exist, although its kind does."""
    said = _read(answer)
    details = said.details or _Details()
    return answer.status == 404 and bool(details.name) and details.kind != "namespaces"


def is_taken(answer: ApiResponse) -> bool:
    """Return whether an object could not be created as its name is taken.

    Conflicts of other kinds, such as at a quota that two requests change, pass.
    """
    return answer.status == 409 and _read(answer).reason == "AlreadyExists"


def explain(answer: ApiResponse, attempt: ApiCall) -> ProviderError:
    """Return the error for an answer that is no success."""
    said = _read(answer)
    # A policy chooses the code of what it denies, such as 401.
    judged = attempt.verb in _WRITES and is_judged(said.message)
    if judged and answer.status < 500 and answer.status not in _AGAIN:
        return _denied(said, answer.status, attempt)
    if answer.status in (401, 403):
        return _forbidden(said, answer.status, attempt)
    if answer.status == 404:
        return _missing(said, attempt)
    too_large = any(words in said.message for words in _TOO_LARGE)
    if answer.status in _CONTENT or (too_large and answer.status >= 500):
        return SpecRefused(
            f"the API server does not accept it: {attempt}:"
            f" {_words(said, answer, attempt)}",
            "the object is too large, or has a value that the cluster does not accept",
        )
    if answer.status in _AGAIN or answer.status >= 500:
        return Transient(
            f"cannot {attempt} now: {_words(said, answer, attempt)}",
            retry_after=_retry_after(said, answer),
        )
    return Refused(
        f"the API server does not accept it: {attempt}:"
        f" {_words(said, answer, attempt)}",
        "check the settings of this provider",
    )


def _forbidden(said: _Status, status: int, attempt: ApiCall) -> ProviderError:
    if status == 401:
        return Refused(
            f"the API server does not accept the credentials of {attempt.access}",
            "they may have expired: get new ones, and check that kubectl works with"
            " them",
        )
    causes = (said.details and said.details.causes) or []
    terminating = any(c.get("reason") == "NamespaceTerminating" for c in causes)
    if terminating or "is being terminated" in said.message:
        return Refused(
            f"namespace {attempt.namespace} is being deleted",
            "create it again once it is gone, or set another namespace",
        )
    denied = _DENIED.search(said.message)
    if attempt.kind and denied:
        part = f"/{attempt.part}" if attempt.part else ""
        # Such as a permission of the cloud that allows it, too.
        more = f": {shorten(denied[1], _MOST)}" if denied[1] else ""
        # Who may read no namespaces does not see that it was deleted.
        gone = "; a namespace that was deleted took its Roles with it"
        return NoRight(
            f"may not {attempt} with {attempt.access}{more}",
            f"apply a Role with verb {attempt.verb} on {attempt.kind.plural}{part} of"
            f' API group "{attempt.kind.group}" and bind it; manifests/ has all'
            + (gone if attempt.namespace else ""),
        )
    if attempt.kind and _OWNER in said.message:
        return Refused(
            f"may not {attempt} with {attempt.access}: it {_OWNER} of a Job or"
            " MiniCluster whose finalizers it may not set",
            "apply a Role with verb update on jobs/finalizers (miniclusters/finalizers)"
            " and bind it",
        )
    return _denied(said, status, attempt)


def _denied(said: _Status, status: int, attempt: ApiCall) -> ProviderError:
    """Return the error for an object that admission denied."""
    found = read_denial(said.message)
    words = shorten(quote(said.message), _MOST)
    if attempt.kind == SECRET:
        words = f"status {status} {_WITHHELD}"
    if found.why is Why.QUOTA:
        # The quota's own words, which never have a value of the object.
        quota = shorten(quote(said.message), _MOST)
        return InsufficientCapacity(f"cannot {attempt}: {quota}", found.advice)
    if found.why in (Why.OUTAGE, Why.LACKS):
        return Transient(f"cannot {attempt} now: {words}")
    # A policy that forbids this object may accept another; one that forbids a list does
    # not look at any.
    what = f"the API server forbids it: {attempt}: {words}"
    if attempt.verb in _MAKES:
        # What a site's policy looks at may differ between bursts of one offer: size,
        # labels, image.
        by_rule = found.why is Why.RULE and not is_judged(said.message)
        return SpecRefused(what, found.advice, by_rule=by_rule)
    return Refused(what, found.advice)


def _missing(said: _Status, attempt: ApiCall) -> ProviderError:
    details = said.details or _Details()
    if details.kind == "namespaces":
        return NoNamespace(attempt.namespace)
    if attempt.kind == MINICLUSTER:
        return Refused(
            f"the cluster has no kind {MINICLUSTER.resource} of"
            f" {MINICLUSTER.api}: its CRD is not installed",
            'install the Flux Operator, or set form = "job", which needs none',
        )
    if details.name:
        return Transient(f"cannot {attempt}: it does not exist")
    return Refused(
        f"the API server has no such resource: {attempt}",
        "check that the address is an API server's, of Kubernetes 1.29 or later",
    )


def _words(said: _Status, answer: ApiResponse, attempt: ApiCall) -> str:
    if attempt.kind == SECRET and said.message:
        return f"status {answer.status} {said.reason} {_WITHHELD}"
    if not said.message:
        return f"status {answer.status} {said.reason}".strip()
    return shorten(said.message, _MOST)


def _retry_after(said: _Status, answer: ApiResponse) -> float | None:
    if said.details and said.details.retry_after_seconds:
        return said.details.retry_after_seconds
    headers = {name.lower(): value for name, value in answer.headers.items()}
    text = headers.get("retry-after", "")
    return float(text) if text.isdigit() else None


def _read(answer: ApiResponse) -> _Status:
    try:
        return from_json(answer.body, _Status)
    except msgspec.MsgspecError:  # a proxy, or a path that the server does not know
        return _Status()
