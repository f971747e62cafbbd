# SPDX-License-Identifier: MIT
"""The `eks` provider type: what is known before a provider is made."""

from __future__ import annotations

from burst.kits.pod_type import PodType

_TABLE = """\
[deadlines]
# Then AWS ends the nodes, with or without a daemon: longer than your longest job.
lease = "24h"

[providers.eks]
# Each burst has a node group of its own in an EKS cluster. `burst doctor` says what is
# missing. Credentials are those that the `aws` command finds.
type = "eks"
{image}# Fill in. The role is that of the cluster's other nodes.
# region = "eu-central-1"
# cluster = "bursts"
# node_role = "arn:aws:iam::123456789012:role/nodes"
# subnets = ["subnet-0123456789abcdef0"]
"""
_INSTANCES = """\
# Fill in. They have at least this many cores; most types have two vCPUs to a core.
# instance_types = ["c7i.4xlarge"]
# Per node and hour.
# price = 0.71
"""

TYPE = PodType(kind="eks", table=_TABLE, more=_INSTANCES)
