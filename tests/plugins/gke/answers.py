# SPDX-License-Identifier: MIT
"""What Google said of clusters, node pools and VMs, as users of GKE reported it."""

from __future__ import annotations

IGM = (
    "Not all instances running in IGM after 35m4.033429035s. Expected 5, running 2,"
    " transitioning 3. Current errors: "
)
INSTANCE = "Instance 'gke-akka-3479-default-pool-97da88a9-8gmv' creation failed: "


def igm(reason: str, said: str, before: str = "Google Compute Engine: ") -> str:
    """Return what GKE says of VMs that Compute Engine did not make."""
    return f"{before}{IGM}[{reason}]: {INSTANCE}{said}"


def quota_exceeded(name: str, limit: str) -> str:
    """Return what GKE says where a quota is used up while it makes nodes."""
    before = "Insufficient quota to satisfy the request: "
    said = f"Quota '{name}' exceeded.  Limit: {limit}."
    return igm("GCE_QUOTA_EXCEEDED", said, before)


REGIONAL = (
    'Insufficient regional quota to satisfy request: resource "SSD_TOTAL_GB":'
    " request requires '300.0' and is short '50.0'. project has a quota of '250.0'"
    " with '250.0' available."
)
EXTERNAL_IP = (
    "Constraint constraints/compute.vmExternalIpAccess violated for project"
    " 291560455175. Add instance projects/p/zones/us-central1-b/instances/gke-x to the"
    " constraint to use external IP with it."
)
CUSTOM = (
    "Operation denied by org policy on resource 'projects/1/locations/us-central1':"
    ' ["customConstraints/custom.enforceNodePoolAutoRepair": "All node pools must have'
    ' auto-repair enabled."].'
)
STOCKOUT = igm(
    "GCE_STOCKOUT",
    "The zone 'projects/p/zones/us-central1-c' does not have enough resources"
    " available to fulfill the request.  '(resource type:compute)'.",
)
REGIONS_GET = (
    "Retry budget exhausted (5 attempts): Google Compute Engine: Required"
    " 'compute.regions.get' permission for 'projects/p/regions/europe-west3'."
)
DELETING = (
    "Operation operation-1634 is currently deleting a node pool for cluster"
    " default-cluster. Please wait and try again once it is done."
)
RATE = (
    "Quota exceeded for quota metric 'Read requests' and limit 'Read requests per"
    " minute' of service 'container.googleapis.com' for consumer 'project_number:1'."
)
OPERATIONS = (
    'Too many operations: cluster "c" hits the concurrent operations quota 5, please'
    " try again later."
)
NO_BILLING = (
    "This API method requires billing to be enabled. Please enable billing on project"
    " #1 by visiting https://console.developers.google.com/billing/enable?project=1"
    " then retry."
)
NOT_ENABLED = (
    "Compute Engine API has not been used in project 1 before or it is disabled. Enable"
    " it by visiting https://console.developers.google.com/apis/api/"
    "compute.googleapis.com/overview?project=1 then retry."
)
