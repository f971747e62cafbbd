# SPDX-License-Identifier: MIT
"""What errors of clouds mean, as Libcloud raises them."""

from __future__ import annotations

import pytest
import requests
from burst_vm.failures import Throttled, error_of
from libcloud.common.exceptions import BaseHTTPError, RateLimitReachedError
from libcloud.common.google import QuotaExceededError, ResourceExistsError
from libcloud.common.types import InvalidCredsError, LibcloudError

from burst.errors import (
    InsufficientCapacity,
    NotFound,
    Refused,
    SpecRefused,
    Transient,
)

NO_HOST = "No valid host was found. There are not enough hosts available."
NO_IP = "No fixed IP addresses available for network: net-1"
STOCKOUT = "ZONE_RESOURCE_POOL_EXHAUSTED: try a different zone"


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (BaseHTTPError(500, "InsufficientInstanceCapacity: x"), InsufficientCapacity),
        (BaseHTTPError(400, "SpotMaxPriceTooLow: x"), InsufficientCapacity),
        (BaseHTTPError(400, "InstanceLimitExceeded: x"), InsufficientCapacity),
        (BaseHTTPError(400, "MaxSpotInstanceCountExceeded"), InsufficientCapacity),
        (BaseHTTPError(403, "Quota exceeded for cores"), InsufficientCapacity),
        (BaseHTTPError(500, NO_HOST), InsufficientCapacity),
        (BaseHTTPError(400, NO_IP), InsufficientCapacity),
        (BaseHTTPError(403, "Maximum number of ports exceeded"), InsufficientCapacity),
        (
            BaseHTTPError(409, "[NetworkInterfaceCountLimitReached] x"),
            InsufficientCapacity,
        ),
        (LibcloudError(STOCKOUT), InsufficientCapacity),
        (QuotaExceededError("CPUS", 403, "QUOTA_EXCEEDED"), InsufficientCapacity),
        (BaseHTTPError(503, "RequestLimitExceeded: slow"), Throttled),
        (BaseHTTPError(400, "RequestLimitExceeded: slow"), Throttled),
        (BaseHTTPError(503, ""), Transient),
        (RateLimitReachedError(headers={"retry-after": "7"}), Throttled),
        (ResourceExistsError("x", 409, "alreadyExists"), Transient),
        (requests.ConnectionError("refused"), Transient),
        (TimeoutError("timed out"), Transient),
        (LibcloudError("Failed to parse XML"), Transient),
        (BaseHTTPError(403, "UnauthorizedOperation: you may not"), Refused),
        (InvalidCredsError("RequestExpired: x"), Refused),
        (BaseHTTPError(401, "no"), Refused),
        (BaseHTTPError(400, "InvalidParameterValue: size"), Refused),
        (BaseHTTPError(409, "a code that is new"), Refused),
        (ValueError("Invalid region: mars-1"), Refused),
        (BaseHTTPError(400, "InvalidInstanceID.NotFound: i-1"), NotFound),
        (BaseHTTPError(404, "Instance x could not be found."), NotFound),
    ],
    ids=str,
)
def test_a_code_is_a_decision(error: Exception, expected: type[Exception]) -> None:
    found = error_of(error, "VM x cannot be made")
    assert type(found) is expected
    assert found.what.startswith("VM x cannot be made: ")


def test_a_size_that_a_zone_lacks_is_refused_of_its_offer_alone() -> None:
    text = (
        "Unsupported: Your requested instance type (c7i.large) is not supported in your"
        " requested Availability Zone (us-east-1e)."
    )
    found = error_of(BaseHTTPError(400, text), "VM x cannot be made")
    assert isinstance(found, SpecRefused)
    assert found.by_rule is True


def test_the_time_to_wait_is_the_clouds() -> None:
    found = error_of(RateLimitReachedError(headers={"retry-after": "7"}), "x")
    assert isinstance(found, Transient)
    assert found.retry_after == 7


@pytest.mark.parametrize(
    "text",
    [
        "HTTPSConnectionPool: Max retries exceeded with url: {} (refused)",
        "Invalid URL 'https://ec2..example.org{}' (refused)",
        "Failed to parse: https://ec2..example.org{} (refused)",
    ],
)
@pytest.mark.parametrize("size", [1, 5000])
def test_no_token_and_no_signature_is_told_but_the_cause(text: str, size: int) -> None:
    url = f"/?Action=RunInstances&UserData={'token' * size}&Signature=abc"
    told = error_of(requests.ConnectionError(text.format(url)), "x").what
    assert "token" not in told
    assert "abc" not in told
    assert told.endswith("(refused)")
