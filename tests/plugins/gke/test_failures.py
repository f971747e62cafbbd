# SPDX-License-Identifier: MIT
"""What Google answered to others, as they reported it, and the class of each."""

from __future__ import annotations

import itertools

import pytest
from burst_gke.failures import CloudFailure

from burst.errors import InsufficientCapacity, ProviderError, Refused, Transient
from tests.plugins.gke.answers import (
    CUSTOM,
    DELETING,
    EXTERNAL_IP,
    NO_BILLING,
    NOT_ENABLED,
    OPERATIONS,
    RATE,
    REGIONAL,
    REGIONS_GET,
    STOCKOUT,
    igm,
    quota_exceeded,
)

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

Row = tuple[str, str, str]
"""Code, message, and what is said of it."""
REFUSED: list[Row] = [
    (
        "PERMISSION_DENIED",
        DENIED,
        "grant container.clusters.create to this account, as roles/container.admin",
    ),
    ("PERMISSION_DENIED", ACT_AS, "roles/iam.serviceAccountUser"),
    ("PERMISSION_DENIED", DISABLED, "enable container.googleapis.com"),
    ("PERMISSION_DENIED", "The API requires a quota project, not set.", "grant"),
    ("FAILED_PRECONDITION", "The network is in legacy mode", "correct"),
    ("INVALID_ARGUMENT", "machine type x does not exist", "correct"),
    ("UNAUTHENTICATED", "invalid credentials", "gcloud auth"),
    ("FAILED_PRECONDITION", EXTERNAL_IP, "private nodes (network_config in request)"),
    (
        "FAILED_PRECONDITION",
        CUSTOM,
        "so that customConstraints/custom.enforceNodePoolAutoRepair holds",
    ),
    (
        "PERMISSION_DENIED",
        REGIONS_GET,
        "grant compute.regions.get to this account, or to GKE's service agent",
    ),
    ("PERMISSION_DENIED", NO_BILLING, "gcloud billing projects link"),
    ("PERMISSION_DENIED", NOT_ENABLED, "gcloud services enable compute.googleapis.com"),
    (
        "UNKNOWN",
        "Constraint compute.requireShieldedVm violated for project 1",
        "so that compute.requireShieldedVm holds",
    ),
    (
        "FAILED_PRECONDITION",
        'The user does not have access to service account "default". Ask a project'
        " owner to grant you the iam.serviceAccountUser role on the service account",
        "roles/iam.serviceAccountUser",
    ),
    (
        "PERMISSION_DENIED",
        "Request is prohibited by organization's policy. vpcServiceControls: 1x",
        "have an administrator of the organization exempt the project",
    ),
]
LACKING: list[Row] = [
    ("RESOURCE_EXHAUSTED", "", "RESOURCE_EXHAUSTED"),
    ("INVALID_ARGUMENT", NO_NODES, "a /24 of the pods' range"),
    ("FAILED_PRECONDITION", NO_BLOCK, "network range"),
    ("INTERNAL", STOCKOUT, "another zone or machine type"),
    (
        "RESOURCE_EXHAUSTED",
        quota_exceeded("SSD_TOTAL_GB", "250.0 in region us-central1"),
        "raise the quota SSD_TOTAL_GB, or set a smaller disk_size_gb in request or try"
        " another region",
    ),
    ("PERMISSION_DENIED", REGIONAL, "disk_size_gb"),
    (
        "PERMISSION_DENIED",
        "Insufficient regional quota to satisfy request for resource:"
        " \"IN_USE_ADDRESSES\". The request requires '2.0' and is short '1.0'.",
        "raise the quota IN_USE_ADDRESSES, or make nodes private"
        " (network_config in request)",
    ),
    (
        "UNKNOWN",
        "Quota 'CPUS_PER_VM_FAMILY' exceeded. Limit: 0.0 in region us-west1 dimensions"
        " = map[region:us-west1 vm_family:C4]",
        "CPUS_PER_VM_FAMILY, or use another family of machines or try another region",
    ),
    (
        "RESOURCE_EXHAUSTED",
        quota_exceeded("CPUS_ALL_REGIONS", "32.0 globally"),
        "CPUS_ALL_REGIONS, or burst less: the quota is the project's, so another",
    ),
    (
        "UNKNOWN",
        "code: ZONE_RESOURCE_POOL_EXHAUSTED message: try later",
        "another zone",
    ),
    # Names as the services that count them spell them.
    (
        "RESOURCE_EXHAUSTED",
        "Quota limit 'NVIDIA-L4-GPUS-per-project-region' has been exceeded. Limit: 1.0"
        " in region us-central1.",
        "raise the quota NVIDIA-L4-GPUS-per-project-region, or try another region",
    ),
    (
        "UNKNOWN",
        "Quota exceeded for quota metric 'compute.googleapis.com/n2_cpus'.",
        "raise the quota n2_cpus, or use another family of machines",
    ),
    ("UNKNOWN", "quota ssd_total_gb exceeded", "set a smaller disk_size_gb"),
]
PASSING: list[Row] = [
    ("UNAVAILABLE", "Socket closed", "Socket closed"),
    ("INTERNAL", "Internal error", ""),
    ("UNKNOWN", "", "UNKNOWN"),
    ("FAILED_PRECONDITION", DELETING, "deleting a node pool"),
    (
        "FAILED_PRECONDITION",
        "Cluster is running incompatible operation operation-1691.",
        "operation-1691",
    ),
    ("RESOURCE_EXHAUSTED", RATE, "per minute"),
    ("RESOURCE_EXHAUSTED", OPERATIONS, "concurrent operations quota 5"),
    # What none of the rules explains may work later.
    ("FAILED_PRECONDITION", "the flux capacitor is cold", "is cold"),
    ("DATA_LOSS", "quota of words", ""),
    # A condition without a constraint says nothing that lasts.
    ("UNKNOWN", igm("CONDITION_NOT_MET", "etag differs"), "etag"),
    (
        "UNKNOWN",
        "Quota exceeded for quota metric 'compute.googleapis.com/read_requests'.",
        "read_requests",
    ),
    ("UNKNOWN", "the quota check-in is late", "check-in"),
]


@pytest.mark.parametrize(
    ("kind", "code", "message", "says"),
    [
        *[(Refused, *row) for row in REFUSED],
        *[(InsufficientCapacity, *row) for row in LACKING],
        *[(Transient, *row) for row in PASSING],
    ],
)
def test_each_has_its_class_and_names_its_rule(
    kind: type[ProviderError], code: str, message: str, says: str
) -> None:
    error = CloudFailure(code, message).error("to make x")
    assert type(error) is kind
    assert "declined to make x" in error.what
    assert says in str(error)
    assert message.split(". ", maxsplit=1)[0] in error.what


SERVICE = {"service": "compute.googleapis.com"}
RULE = {"customConstraints": "customConstraints/custom.x"}


@pytest.mark.parametrize(
    ("reason", "metadata", "kind", "says"),
    [
        ("SERVICE_DISABLED", SERVICE, Refused, "services enable compute.googleapis"),
        ("BILLING_DISABLED", {}, Refused, "open billing account"),
        (
            "IAM_PERMISSION_DENIED",
            {"permission": "a.b.list"},
            Refused,
            "grant a.b.list",
        ),
        ("CUSTOM_ORG_POLICY_VIOLATION", RULE, Refused, "custom.x holds"),
        ("GCE_PERMISSIONS_ERROR", {}, Refused, "grant what it names"),
        ("CLUSTER_ALREADY_HAS_OPERATION", {}, Transient, ""),
        ("RATE_LIMIT_EXCEEDED", {}, Transient, "RATE_LIMIT_EXCEEDED"),
        ("rateLimitExceeded", {}, Transient, ""),
        ("resource_availability", {}, InsufficientCapacity, "another zone"),
        ("quotaExceeded", {}, InsufficientCapacity, "the quota"),
        (
            "RESOURCE_QUOTA_EXCEEDED",
            {"quota_location": "global"},
            InsufficientCapacity,
            "another region does not help",
        ),
    ],
)
def test_a_reason_decides_whatever_the_code_and_the_words_are(
    reason: str, metadata: dict[str, str], kind: type[ProviderError], says: str
) -> None:
    codes = ("UNKNOWN", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "UNAVAILABLE")
    wait = "please wait, an operation is in progress"
    for code, words in itertools.product(codes, ("so it is", wait, "")):
        fault = CloudFailure(code, words, reasons=(reason,), metadata=metadata)
        error = fault.error("to make x")
        assert type(error) is kind
        assert says in str(error)


def test_one_that_lasts_counts_before_one_that_ends() -> None:
    both = CloudFailure("UNKNOWN", f"{STOCKOUT}; [CONDITION_NOT_MET]: {EXTERNAL_IP}")
    assert type(both.error("to make x")) is Refused


@pytest.mark.parametrize(
    ("code", "message", "told", "wait"),
    [
        # Retry-After says by itself that the same call may work.
        ("RESOURCE_EXHAUSTED", "", 7.0, 7.0),
        ("RESOURCE_EXHAUSTED", "too many concurrent operations", None, 60.0),
        ("FAILED_PRECONDITION", "operation in progress", None, 10.0),
    ],
)
def test_a_time_to_wait_is_the_services_or_one_without_hurry(
    code: str, message: str, told: float | None, wait: float
) -> None:
    error = CloudFailure(code, message, retry_after=told).error("to make x")
    assert isinstance(error, Transient)
    assert error.retry_after == wait


def test_a_quota_of_gpus_is_one_however_it_is_spelt() -> None:
    for name in ("NVIDIA_L4_GPUS", "nvidia_l4_gpus", "GPUS-ALL-REGIONS-per-project"):
        fault = CloudFailure("UNKNOWN", f"Quota '{name}' exceeded.")
        assert fault.of_gpus
    assert fault.everywhere
    assert not CloudFailure("UNKNOWN", "Quota 'n2-cpus' exceeded.").of_gpus
