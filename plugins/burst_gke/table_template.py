# SPDX-License-Identifier: MIT
"""The table `[providers.gke]` for `burst lead init`."""

from __future__ import annotations

from collections.abc import Iterable

from burst.provider_type import NodesRequest

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
# Fill in. It has at least so many cores; most types have two vCPUs to a core.
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


def gke_table(wanted: Iterable[NodesRequest]) -> str:
    """Return the table, with an offer for each of these nodes."""
    offers = (
        _OFFER.format(
            name=each.name,
            vcpus=2 * each.shape.cores,
            cores=each.shape.cores,
            gpus=_GPUS.format(count=each.shape.gpus) if each.shape.gpus else "",
            nodes=each.nodes,
        )
        for each in wanted
    )
    return "".join((_TABLE, *offers))
