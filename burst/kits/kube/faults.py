# SPDX-License-Identifier: MIT
"""Maps answers of the API server to errors of `burst.errors`.

Sources: the Kubernetes API conventions ("Response Status Kind"), and the answers of
1.34. The message text is read only if one reason has two meanings, or if a policy wrote
the message (`denials.py`).
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
# Bad request, request entity too large, unprocessable entity: the object is at fault.
_CONTENT = (400, 413, 422)
# The authorizer's message. A cloud's authorizer may add its own words at the end.
_DENIED = re.compile(
    r"\bUser \".*?\" cannot \w+\b"
    r"(?:.*?(?:in the namespace \"[^\"]*\"|at the cluster scope)(?::\s*(.+))?)?",
    re.DOTALL,
)
# From the admission plug-in OwnerReferencesPermissionEnforcement.
_OWNER = "cannot set blockOwnerDeletion"
# A timeout and an early request, both from proxies; a conflict, an old list, too many
# requests.
_AGAIN = (408, 409, 410, 425, 429)
# In place of a message about a Secret, as it may quote the Secret's values.
_WITHHELD = "(the message is not shown, as it may quote the Secret)"
_METHODS = {"create": "POST", "patch": "PATCH", "delete": "DELETE"}
_MAKES = ("create", "patch")
_WRITES = (*_MAKES, "delete")
# etcd's error for an object over etcd's limit, which is below the API server's.
_TOO_LARGE = ("etcdserver: request is too large", "message larger than max")


class NoRight(Refused):
    """RBAC denies the request. A deleted namespace takes its Roles with it."""


class NoNamespace(Refused):
    """The namespace does not exist, so it has no objects."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"there is no namespace {name}",
            f"kubectl create namespace {name}, and apply its Roles again",
        )


class NoOperator(Refused):
    """The API server does not serve MiniClusters."""

    def __init__(self) -> None:
        super().__init__(
            f"the cluster has no kind {MINICLUSTER.resource} of"
            f" {MINICLUSTER.api}: its CRD is not installed",
            'install the Flux Operator, or set form = "job", which needs none',
        )


class ApiCall(msgspec.Struct, frozen=True):
    """A request to the API server, described in the words of RBAC."""

    access: Access
    verb: str
    kind: Kind | None = None
    namespace: str = ""
    name: str = ""
    part: str = ""
    """A subresource, such as `log`."""

    @property
    def method(self) -> str:
        """The method of HTTP."""
        return _METHODS.get(self.verb, "GET")

    @property
    def path(self) -> str:
        """The path at the API server; a new object has none of its own yet."""
        assert self.kind is not None, "the path is given otherwise"
        name = "" if self.verb == "create" else self.name
        return self.kind.path(self.namespace, name, self.part)

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
    """Return whether an object could not be created because its name is taken.

    Other conflicts, as when two requests change one quota, are temporary.
    """
    return answer.status == 409 and _read(answer).reason == "AlreadyExists"


def explain(answer: ApiResponse, attempt: ApiCall) -> ProviderError:
    """Return the error for an answer that is not a success."""
    said = _read(answer)
    # A policy may choose any code for its denial, such as 401.
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
        # For example, a permission of the cloud that would also allow the request.
        more = f": {shorten(denied[1], _MOST)}" if denied[1] else ""
        # Without the right to read namespaces, it is not known whether it was deleted.
        gone = (
            "; a namespace that was deleted took its Roles with it: make it again, or"
            " give the right to read namespaces (manifests/parts/nodes)"
        )
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
        # The quota's own words, which never quote a value of the object.
        quota = shorten(quote(said.message), _MOST)
        return InsufficientCapacity(f"cannot {attempt}: {quota}", found.advice)
    if found.why in (Why.OUTAGE, Why.LACKS):
        return Transient(f"cannot {attempt} now: {words}")
    # A policy that forbids this object may accept another object, so a create or patch
    # raises SpecRefused. Requests with other verbs send no object that could differ.
    what = f"the API server forbids it: {attempt}: {words}"
    if attempt.verb in _MAKES:
        # A site's policy may judge what differs between bursts of one offer: size,
        # labels, image. So its denial does not forbid all bursts of the offer.
        by_rule = found.why is Why.RULE and not is_judged(said.message)
        return SpecRefused(what, found.advice, by_rule=by_rule)
    return Refused(what, found.advice)


def _missing(said: _Status, attempt: ApiCall) -> ProviderError:
    details = said.details or _Details()
    if details.kind == "namespaces":
        return NoNamespace(attempt.namespace)
    if attempt.kind == MINICLUSTER:
        return NoOperator()
    if details.name:
        return Transient(f"cannot {attempt}: it does not exist")
    return Refused(
        f"the API server has no such resource: {attempt}",
        "check that the address is that of an API server of Kubernetes 1.29 or later",
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
    except msgspec.MsgspecError:  # from a proxy, or for a path unknown to the server
        return _Status()
