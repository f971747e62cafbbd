# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "kind"`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from burst.kits.pods import PodSettings

_ARCHIVES = (".tar", ".tar.gz", ".tgz")
_IN_CONFIG = "write it in kind's own configuration file, which config names"


class KindSettings(PodSettings, frozen=True, kw_only=True):
    """The keys of any cluster (`burst.kits.pods`), and which cluster this is."""

    cluster: str = ""
    """A kind cluster that exists (`kind get clusters`). With `create`, the name of the
    new one, to which a hash is added; by default the provider's."""
    create: bool = False
    """Make a cluster for the first burst and delete it with the last. Only such a
    cluster is ever deleted: its name ends in a hash of owner and provider. A change of
    the keys below is used for the next cluster."""
    config: str = ""
    """Path of kind's own configuration file (kind.sigs.k8s.io, "Configuration"), for
    `kind create cluster --config`: nodes, their image, subnets, mounts. Default: one
    node, a control plane that runs followers too, whose pods and Services have other
    addresses than kind gives by itself, so that a lead in a kind cluster has others."""
    manifests: tuple[str, ...] = ()
    """YAML files applied to the new cluster: a namespace, the Flux Operator."""
    images: tuple[str, ...] = ()
    """Loaded into the cluster's nodes before any burst is made: archives, which end in
    .tar, .tar.gz or .tgz, and images of this host's docker."""
    lead: str = ""
    """Followers connect to the address of this container in kind's docker network, such
    as `NAME-control-plane` of the lead's cluster, or of this host, `host`; at the port
    of the lead's endpoint. By default they connect to that endpoint."""
    one_per_node: bool = False
    """Off, as all its nodes are this host, whose cores they share anyway."""
    internal: bool = False
    """Connect to the API server in kind's docker network: for a daemon in docker."""
    dir: str = ""
    """Where kubeconfig and log of the cluster are; `/tmp/burst-UID` by default. Change
    it only while no burst lives."""

    retired: ClassVar[Mapping[str, str]] = {
        **PodSettings.retired,
        "kind": "remove it: the program is found by the daemon's PATH",
        "node_image": f"{_IN_CONFIG}, as image of each of nodes",
        "nodes": f"{_IN_CONFIG}, as nodes: a control-plane and workers",
        "pod_subnet": f"{_IN_CONFIG}, as networking.podSubnet",
        "service_subnet": f"{_IN_CONFIG}, as networking.serviceSubnet",
    }


def is_archive(image: str) -> bool:
    """Tell whether an entry of `images` is a file; else docker has it."""
    return image.endswith(_ARCHIVES)
