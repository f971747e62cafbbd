# SPDX-License-Identifier: MIT
"""What errors of AWS and node groups mean, in the classes of `burst.errors`.

The first pattern that is found in the code decides; any other code is Transient.
Sources: the EKS API's "Issue" and "CreateNodegroup", "Common errors" of its reference,
and the EC2 API's "Error codes", which Auto Scaling groups have in their messages.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from burst.errors import (
    InsufficientCapacity,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)
from burst.provider import Failure

# EKS takes minutes for a node group, and its rate limits are a few calls a second.
_AGAIN_S = 5.0

_QUOTA = "request a higher quota from AWS, or lower max_nodes and [limits] to the quota"
_SETTINGS = "compare the provider's table with what AWS has in that region"
_RIGHTS = "give this identity the rights that docs/eks.md lists"
_LOGIN = "renew the credentials: `aws sts get-caller-identity` shows whether they work"


class NoSuchThing(Refused):
    """AWS has no cluster, or no node group, of that name.

    Not NotFound: that would say that nothing of a burst is left.
    """


class NoLogin(Refused):
    """There are no credentials, or AWS does not accept them."""


class CodeMeaning(NamedTuple):
    """What a code means."""

    pattern: re.Pattern[str]
    error: type[ProviderError]
    advice: str = ""

    @property
    def lasts(self) -> bool:
        """Whether it does not pass by itself."""
        return self.error is not Transient

    @property
    def failure(self) -> Failure:
        """The class of failure of a burst that fails for this reason."""
        if issubclass(self.error, InsufficientCapacity):
            return Failure.CAPACITY
        return Failure.REFUSED if issubclass(self.error, Refused) else Failure.OTHER

    def raised(self, what: str) -> ProviderError:
        """Return the error to raise; `what` is its text."""
        if self.error is SpecRefused:
            # It is about the offer's instances or the subnets: the next burst gets it,
            # too.
            return SpecRefused(what, self.advice, by_rule=True)
        if self.error is Transient:
            return Transient(what, self.advice, retry_after=_AGAIN_S)
        return self.error(what, self.advice)


def _means(pattern: str, error: type[ProviderError], advice: str = "") -> CodeMeaning:
    return CodeMeaning(re.compile(pattern), error, advice)


_PASSING = _means("", Transient)
_MEANINGS = (
    _means("ResourceNotFound", NoSuchThing, "set region, cluster and profile"),
    _means(
        r"Throttl|RateLimit|TooManyRequests|RequestLimitExceeded|Unavailable"
        r"|ServerException|Internal|RequestTimeout|ResourceInUse|InvalidRequest",
        Transient,
    ),
    _means(
        r"VcpuLimit|LimitExceeded|MaxSpotInstanceCount",
        InsufficientCapacity,
        _QUOTA,
    ),
    _means(
        r"Credentials?Error|UnrecognizedClient|InvalidClientTokenId|ExpiredToken"
        r"|Signature|MissingAuthenticationToken|RequestExpired|^ProfileNotFound"
        r"|CredentialRetrieval|TokenRetrieval|SSO",
        NoLogin,
        _LOGIN,
    ),
    _means(r"AccessDenied|UnauthorizedOperation|OptInRequired", Refused, _RIGHTS),
    _means(
        r"NodeCreationFailure",
        SpecRefused,
        "nodes started and did not register: check the rights of node_role, and whether"
        " the subnets reach the cluster's API server and the image registries",
    ),
    # In the message of an Auto Scaling group, a code that no pattern here has means a
    # lack of capacity.
    _means(
        r"InvalidParameter|ParamValidation|Unsupported|DoesNotExist|NotFound|ClientException"
        r"|Invalid(?!Request)|RoleNotFound|MissingIpv6|TooLong|Mismatch",
        SpecRefused,
        _SETTINGS,
    ),
    _means("AsgInstanceLaunchFailures|Insufficient|Capacity", InsufficientCapacity),
)


def meaning_of(code: str, said: str = "") -> CodeMeaning:
    """Return what a code means; `said` is the message with it.

    The message of AsgInstanceLaunchFailures has the code that EC2 told the Auto Scaling
    group, which decides if it is known. Other messages are not read.
    """
    if code == "AsgInstanceLaunchFailures":
        found = next((m for m in _MEANINGS if m.pattern.search(said)), None)
        code = code if found is None or found.error is NoSuchThing else said
    return next((m for m in _MEANINGS if m.pattern.search(code)), _PASSING)


def error_of(code: str, status: int, what: str) -> ProviderError:
    """Return the error to raise for an error with a code and an HTTP status.

    With a status of 429, or of 500 and above, the cloud says that it cannot answer now.
    """
    found = _PASSING if status >= 500 or status == 429 else meaning_of(code)
    return found.raised(what)
