# SPDX-License-Identifier: MIT
"""What errors of clouds mean, in the classes of `burst.errors`.

The first pattern that is found in the error's text decides. Sources: the EC2 API's
"Error codes for the Amazon EC2 API"; google/api/error_reason.proto and Compute Engine's
"Troubleshoot resource availability errors"; messages of OpenStack's Nova; Azure's
"Troubleshoot common Azure deployment errors".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)
from burst.kits.program import ErrorPattern, find_pattern
from burst.kits.shorten import shorten

_RIGHTS = "give the account the rights that docs/vm.md lists, and check `credentials`"
_QUOTA = "ask the cloud for a higher quota, or set `total` of the offer to it"
_SETTINGS = "compare this table with what the cloud has; then burst enable"


# A URL of EC2 contains the user data with a token, and may contain a signature.
_URL = re.compile(r" with url: \S+|\?\w+=[^\s'\"]*")
# Shorter words, such as those of JSON itself, are in any text.
_WORD = re.compile(r"[\w+/=-]{6,}")


class Throttled(Transient):
    """The cloud did not take a request, because there were too many.

    EC2 takes five requests for VMs at once, and two a second from then on.
    """


_PASSING = ErrorPattern("", Transient)
_THROTTLED = ErrorPattern("", Throttled)
_GONE = ErrorPattern("", NotFound)
_WANT_OF_RIGHTS = ErrorPattern("", Refused, _RIGHTS)
_WRONG = ErrorPattern("", Refused, _SETTINGS)

_MEANINGS = (
    ErrorPattern(
        r"InvalidInstanceID|instance\S* could not be found|\[ResourceNotFound\]",
        NotFound,
    ),
    ErrorPattern(
        r"RequestLimitExceeded|Throttl|rateLimit|RATE_LIMIT|TooManyRequests", Throttled
    ),
    ErrorPattern(
        r"IncorrectInstanceState|alreadyExists|InternalError|InternalFailure"
        r"|Unavailable\b|OVERLOADED|RetryableError|AnotherOperationInProgress"
        # A VM of that name exists, or is being deleted.
        r"|\[Conflict\]|OperationPreempted|PreconditionFailed|marked for deletion",
        Transient,
    ),
    ErrorPattern(
        r"Insufficient\w*Capacity|InsufficientFreeAddresses|InsufficientHost"
        r"|InsufficientAddress|SpotMaxPriceTooLow|POOL_EXHAUSTED|STOCKOUT"
        r"|No valid host|does not have enough resources"
        r"|AllocationFailed|Overconstrained\w*AllocationRequest|SkuNotAvailable"
        r"|SubnetIsFull|No (fixed|more) IP addresses available",
        InsufficientCapacity,
    ),
    ErrorPattern(
        r"LimitExceeded|CountLimitReached|MaxSpotInstanceCount|quota"
        # OpenStack's quotas of networks.
        r"|Maximum number of (ports|fixed IPs|floating IPs) exceeded",
        InsufficientCapacity,
        _QUOTA,
    ),
    ErrorPattern(
        r"AuthFailure|Unauthorized|InvalidClientTokenId|SignatureDoesNotMatch"
        r"|Expired|OptInRequired|Blocked|PendingVerification|invalid_grant"
        r"|PERMISSION_DENIED|Forbidden|Invalid credentials"
        r"|AuthorizationFailed|AuthenticationFailed|AuthenticationToken|AADSTS\d",
        Refused,
        _RIGHTS,
    ),
    # EC2's code where the zone of the subnet has no VMs of this size.
    ErrorPattern(
        r"\bUnsupported: ", SpecRefused, "set another size of the offer, or subnet"
    ),
    ErrorPattern(r"Invalid|Missing|Unknown|Unsupported|Malformed", Refused, _SETTINGS),
)


def error_of(
    error: Exception, what: str, secrets: Mapping[str, Any] | None = None
) -> ProviderError:
    """Return the error to raise for an error of Libcloud or of the network.

    `what` is what could not be done. If a text of Libcloud's own has a part of
    `secrets`, the type of the error is told instead.

    An error without a known code counts by its HTTP status: 401 and 403 as missing
    rights, 404 as NotFound, 429 as Throttled, other 4xx as wrong settings. All else is
    Transient, and so are errors of the network, and 429 and 5xx unless the text tells
    of a want of capacity or of throttling.
    """
    # The URL is removed before the text is cut: the cause may come after a long URL.
    said = str(getattr(error, "value", None) or error)
    text = shorten(_URL.sub("", said))
    status = _status(error)
    own = not status and not isinstance(error, OSError)
    hidden = own and _has_part(said, secrets or {})
    told = f"{what}: {(not hidden and text) or type(error).__name__}"
    if isinstance(error, OSError):
        return Transient(told, "check the network, and `endpoint`")
    words = f"{getattr(error, 'code', '')} {text}"
    found = find_pattern(_MEANINGS, words) or _by_status(error)
    # With 429 and 5xx a cloud says that it cannot answer now.
    is_known = found.error in (InsufficientCapacity, Throttled)
    if not is_known and (status == 429 or status >= 500):
        found = _PASSING
    if issubclass(found.error, Transient):
        after = float(getattr(error, "retry_after", 0) or 0)
        return found.error(told, retry_after=max(after, 1.0))
    if found.error is SpecRefused:
        # The next burst of the offer would fail in the same way.
        return SpecRefused(told, found.advice, by_rule=True)
    return found.error(told, found.advice)


def _has_part(text: str, secrets: Mapping[str, Any]) -> bool:
    """Tell whether the text has a word of a secret, such as a value in its JSON."""
    words = (word for value in secrets.values() for word in _WORD.findall(str(value)))
    return any(word in text for word in words)


def _by_status(error: Exception) -> ErrorPattern:
    """Return what an error means whose text has no known code."""
    status = _status(error)
    if type(error).__name__ == "InvalidCredsError" or status in (401, 403):
        return _WANT_OF_RIGHTS
    if status == 429:
        return _THROTTLED
    if status == 404:
        return _GONE
    # Libcloud's drivers raise these for wrong arguments.
    wrong = isinstance(error, TypeError | ValueError) or status >= 400
    return _WRONG if wrong else _PASSING


def is_capacity(text: str) -> bool:
    """Tell whether the text says that the cloud has no such VM, or no more of them."""
    found = find_pattern(_MEANINGS, text)
    return found is not None and found.error is InsufficientCapacity


def _status(error: Exception) -> int:
    """Return the HTTP status of an error, 0 if it has none."""
    for name in ("http_code", "code"):
        value = getattr(error, name, None)
        if isinstance(value, int):
            return int(value)
    return 0
