# SPDX-License-Identifier: MIT
"""The `gke` provider type: what is known before a provider is made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from burst.errors import ConfigError
from burst.kits.pod_type import PodType
from burst.provider_type import ProviderFlag, TableRequest

# The defaults of the script that this project replaces.
_LOCATION = "us-central1-a"
_MACHINE = "n2-standard-8"
_TABLE = """\
[providers.gke]
# Each burst has a GKE cluster of its own. `burst doctor` says what is missing.
type = "gke"
# Fill in. The image's Flux has the lead's major and minor version.
# project = "my-project"
# location = "us-central1-a"
# image = "us-docker.pkg.dev/my-project/flux/flux:0.88.0"
# Google deletes the nodes after this time even if no daemon runs.
max_run_duration = "24h"

# By default nodes run as an account that has too many rights.
# [providers.gke.request.node_pool.config]
# service_account = "flux-nodes@my-project.iam.gserviceaccount.com"
"""
_OFFER = """
[providers.gke.offers.{name}]
# Fill in. It has at least this many cores; most types have two vCPUs to a core.
# machine_type = "n2-standard-{vcpus}"
cores = {cores}
{gpus}# The most followers of one burst.
max_nodes = {nodes}
# Of each follower's jobs together; 8 GiB for each core at most unless it is set.
# memory = "28Gi"
# Per node and hour.
# price = 0.39
"""
_GPUS = """\
gpus = {count}
# Fill in: of which type they are.
# accelerator = "nvidia-l4"
"""


class GkeType(PodType):
    """Flags that are named as in the script that this project replaces.

    With a project, a zone and a machine type no settings file is needed.
    """

    flags: Sequence[ProviderFlag] = (
        ProviderFlag("project", "Google Cloud project to burst into.", selects=True),
        ProviderFlag(
            "cluster-name",
            "Prefix of the GKE cluster's name; the burst's id follows.",
            selects=True,
        ),
        ProviderFlag(
            "zone", f"Zone of the GKE cluster. Default: {_LOCATION}.", selects=True
        ),
        ProviderFlag(
            "region", "Region of the GKE cluster, instead of a zone.", selects=True
        ),
        ProviderFlag(
            "machine-type",
            f"Machine type of the GKE nodes. Default: {_MACHINE}.",
            selects=True,
        ),
        *PodType.flags,
    )

    def options(
        self, given: Mapping[str, str], table: Mapping[str, Any], nodes: int
    ) -> dict[str, Any]:
        """Return the table with what the flags say. Raises ConfigError."""
        if not (given.get("project") or table.get("project")):
            raise ConfigError(
                "--project: is missing",
                "give it, or set project in the provider's table",
            )
        found = super().options(given, table, nodes)
        found |= _place(given)
        found.setdefault("location", _LOCATION)
        machine = given.get("machine-type")
        if machine or "offers" not in found:
            machine = machine or _MACHINE
            offer = {"machine_type": machine, "max_nodes": nodes}
            found["offers"] = {machine: offer}
        return found

    def table_template(self, wanted: TableRequest) -> str:
        """Return the table, with an offer for each of these nodes."""
        offers = (
            _OFFER.format(
                name=each.name,
                vcpus=2 * each.shape.cores,
                cores=each.shape.cores,
                gpus=_GPUS.format(count=each.shape.gpus) if each.shape.gpus else "",
                nodes=each.nodes,
            )
            for each in wanted.each
        )
        return "".join((_TABLE, *offers))


def _place(given: Mapping[str, str]) -> dict[str, str]:
    found = {}
    zone, region = given.get("zone"), given.get("region")
    if "project" in given:
        found["project"] = given["project"]
    if "cluster-name" in given:
        found["name_prefix"] = given["cluster-name"]
    if location := region or zone:
        found["location"] = location
    if region and zone:
        found["zone"] = zone
    return found


TYPE = GkeType()
