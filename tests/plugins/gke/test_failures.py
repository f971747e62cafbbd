# SPDX-License-Identifier: MIT
"""What Google says when it does not, and the decision that follows."""

from __future__ import annotations

import pytest
from burst_gke.failures import CloudFailure

from burst.errors import InsufficientCapacity, Refused, Transient

DENIED = 'Required "container.clusters.create" permission(s) for "projects/p".'
ACT_AS = "No access to the service account: ask for iam.serviceAccounts.actAs"
DISABLED = (
    "Kubernetes Engine API has not been used in project 1 before or it is disabled."
)
# As users of GKE have reported them.
NO_NODES = (
    "Not all instances running in IGM after 24.1s. Expected 1, running 0, transitioning"
    " 1. Current errors: [IP_SPACE_EXHAUSTED]: Instance 'gke-x' creation failed: IP"
    " space of 'projects/p/regions/r/subnetworks/s' is exhausted."
)
NO_BLOCK = (
    'The network "default" does not have available private IP space in 10.0.0.0/8 to'
    " reserve a /14 block for containers for cluster x, which is currently made"
)


@pytest.mark.parametrize(
    ("code", "message", "kind", "says"),
    [
        ("PERMISSION_DENIED", DENIED, Refused, "grant container.clusters.create"),
        ("PERMISSION_DENIED", DENIED, Refused, "roles/container.admin"),
        ("PERMISSION_DENIED", ACT_AS, Refused, "roles/iam.serviceAccountUser"),
        ("PERMISSION_DENIED", DISABLED, Refused, "gcloud services enable"),
        (
            "PERMISSION_DENIED",
            "The API requires a quota project, which is not set by default.",
            Refused,
            "grant",
        ),
        (
            "PERMISSION_DENIED",
            "Request had insufficient authentication scopes.",
            Refused,
            "grant",
        ),
        (
            "PERMISSION_DENIED",
            "Insufficient regional quota to satisfy request: resource CPUS",
            InsufficientCapacity,
            "raise the quota",
        ),
        (
            "RESOURCE_EXHAUSTED",
            "Quota exceeded for quota metric 'Requests' and limit 'per minute'",
            Transient,
            "declined to",
        ),
        ("RESOURCE_EXHAUSTED", "concurrent operations quota", Transient, ""),
        ("RESOURCE_EXHAUSTED", "quota CPUS_ALL_REGIONS", InsufficientCapacity, ""),
        ("RESOURCE_EXHAUSTED", "", InsufficientCapacity, "RESOURCE_EXHAUSTED"),
        (
            "FAILED_PRECONDITION",
            "Operation operation-1 is currently creating cluster x. Please wait.",
            Transient,
            "operation-1",
        ),
        (
            "INVALID_ARGUMENT",
            NO_NODES,
            InsufficientCapacity,
            "a /24 of the pods' range",
        ),
        ("FAILED_PRECONDITION", NO_BLOCK, InsufficientCapacity, "subnetwork"),
        ("FAILED_PRECONDITION", "The network is in legacy mode", Refused, "correct"),
        ("INVALID_ARGUMENT", "machine type x does not exist", Refused, "correct"),
        ("UNAUTHENTICATED", "invalid credentials", Refused, "gcloud auth"),
        ("UNAVAILABLE", "Socket closed", Transient, "Socket closed"),
        ("DEADLINE_EXCEEDED", "Deadline Exceeded", Transient, ""),
        ("ABORTED", "conflict", Transient, ""),
        ("INTERNAL", "Internal error", Transient, ""),
        ("UNKNOWN", "", Transient, "UNKNOWN"),
    ],
)
def test_each_has_its_class(
    code: str, message: str, kind: type[Exception], says: str
) -> None:
    error = CloudFailure(code=code, message=message).error("to make x")
    assert type(error) is kind
    assert "declined to make x" in str(error)
    assert says in str(error)


def test_when_to_come_back_is_as_the_service_says() -> None:
    fault = CloudFailure(
        code="RESOURCE_EXHAUSTED", message="per minute", retry_after=7.0
    )
    error = fault.error("to list")
    assert isinstance(error, Transient)
    assert error.retry_after == 7.0


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("RESOURCE_EXHAUSTED", "too many concurrent operations"),
        ("FAILED_PRECONDITION", "operation in progress"),
    ],
)
def test_where_it_does_not_say_we_are_in_no_hurry(code: str, message: str) -> None:
    error = CloudFailure(code=code, message=message).error("to list")
    assert isinstance(error, Transient)
    assert error.retry_after
    assert error.retry_after >= 10


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("INTERNAL", InsufficientCapacity),
        ("RESOURCE_EXHAUSTED", InsufficientCapacity),
        ("INVALID_ARGUMENT", Refused),
    ],
)
def test_work_that_failed_is_not_ordered_again(
    code: str, kind: type[Exception]
) -> None:
    assert (
        type(CloudFailure(code=code, message="it broke").final_error("to make x"))
        is kind
    )
