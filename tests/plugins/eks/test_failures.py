# SPDX-License-Identifier: MIT
"""What AWS says becomes a decision, by its code."""

from __future__ import annotations

import botocore.session
import pytest
from burst_eks.failures import NoLogin, NoSuchThing, error_of, meaning_of

from burst.errors import (
    InsufficientCapacity,
    ProviderError,
    Refused,
    SpecRefused,
    Transient,
)

# Those of health issues that pass, or that say nothing of what can be had.
PASSING = {
    "AutoScalingGroupRateLimitExceeded",
    "AutoScalingGroupInstanceRefreshActive",
    "ClusterUnreachable",
    "Ec2LaunchTemplateDeletionFailure",
    "Ec2SecurityGroupDeletionFailure",
    "IamThrottling",
    "InternalFailure",
    "NodeTerminationFailure",
    "PodEvictionFailure",
    "Unknown",
}
CAPACITY = {
    "AsgInstanceLaunchFailures",
    "Ec2LaunchTemplateMaxLimitExceeded",
    "Ec2LaunchTemplateVersionMaxLimitExceeded",
    "IamLimitExceeded",
    "InstanceLimitExceeded",
    "InsufficientFreeAddresses",
    "LimitExceeded",
}
LASTING = {"AccessDenied", "AutoScalingGroupOptInRequired"}


def issue_codes() -> list[str]:
    """Return all codes of problems of node groups that Amazon's client knows."""
    model = botocore.session.get_session().get_service_model("eks")
    found: list[str] = model.shape_for("NodegroupIssueCode").enum
    return found


def test_each_problem_of_a_node_group_has_a_meaning() -> None:
    for code in issue_codes():
        wanted: type[ProviderError] = SpecRefused
        if code in PASSING:
            wanted = Transient
        elif code in CAPACITY:
            wanted = InsufficientCapacity
        elif code in LASTING:
            wanted = Refused
        assert meaning_of(code, "words of EKS").error is wanted, code


@pytest.mark.parametrize(
    ("said", "error"),
    [
        ("Could not launch On-Demand Instances. VcpuLimitExceeded - You have requested"
         " more vCPU capacity than your current vCPU limit of 32 allows",
         InsufficientCapacity),
        ("InsufficientFreeAddressesInSubnet - There are not enough free addresses in"
         " subnet 'subnet-0a'", InsufficientCapacity),
        ("Could not launch On-Demand Instances. Unsupported - Your requested instance"
         " type (p5.48xlarge) is not supported in your requested Availability Zone",
         SpecRefused),
        ("You are not authorized to use launch template: lt-1. UnauthorizedOperation",
         Refused),
        ("RequestLimitExceeded - Request limit exceeded.", Transient),
        ("The processor of this was assonant", InsufficientCapacity),
    ],
)  # fmt: skip
def test_what_ec2_told_an_auto_scaling_group_is_looked_at(
    said: str, error: type[ProviderError]
) -> None:
    assert meaning_of("AsgInstanceLaunchFailures", said).error is error


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [
        ("ResourceLimitExceededException", 400, InsufficientCapacity),
        ("ResourceInUseException", 409, Transient),
        ("InvalidRequestException", 400, Transient),
        ("InvalidParameterException", 400, SpecRefused),
        ("ParamValidationError", 0, SpecRefused),
        ("ResourceNotFoundException", 404, NoSuchThing),
        ("AccessDeniedException", 403, Refused),
        ("ExpiredTokenException", 403, NoLogin),
        ("PartialCredentialsError", 0, NoLogin),
        ("ProfileNotFound", 0, NoLogin),
        ("ThrottlingException", 400, Transient),
        ("TooManyRequestsException", 429, Transient),
        ("AccessDeniedException", 503, Transient),
        ("EndpointConnectionError", 0, Transient),
        ("ReadTimeoutError", 0, Transient),
        ("NeverHeardOf", 400, Transient),
    ],
)
def test_an_answer_becomes_a_decision(
    code: str, status: int, error: type[ProviderError]
) -> None:
    found = error_of(code, status, "AWS declined it")
    assert type(found) is error
    assert found.what == "AWS declined it"
    # It sets that offer aside.
    assert not isinstance(found, SpecRefused) or found.by_rule
