# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "kind"`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from burst.kits.pods import PodSettings

_ARCHIVES = (".tar", ".tar.gz", ".tgz")
_IN_CONFIG = "write it in kind's own configuration file, which config names"


class KindSettings(PodSettings, frozen=True, kw_only=True):
    """The keys of any cluster (`burst.kits.pods`), and those of a kind cluster."""

    cluster: str = ""
    """Name of an existing kind cluster (`kind get clusters`). With `create`, the name
    of the new cluster, to which a hash is added; default: the provider's name."""
    create: bool = False
    """Make a cluster for the first burst and delete it with the last. Only such a
    cluster is ever deleted: its name ends in a hash of owner and provider. Its log is
    in `/tmp/burst-UID`. A change of the keys below applies to the next cluster."""
    config: str = ""
    """Path of kind's own configuration file (kind.sigs.k8s.io, "Configuration"), for
    `kind create cluster --config`: nodes, their image, subnets, mounts. Default: one
    node, a control plane that runs followers too. Its pods and Services have other
    subnets than kind's default, which a lead in another kind cluster may have."""
    manifests: tuple[str, ...] = ()
    """YAML files to apply to the new cluster: a namespace, the Flux Operator."""
    images: tuple[str, ...] = ()
    """Images to load into the cluster's nodes before any burst is made: archives, which
    end in .tar, .tar.gz or .tgz, and images of this host's docker."""
    lead: str = ""
    """Container whose address in kind's docker network followers use for the lead, such
    as `NAME-control-plane` of the lead's cluster; `host` for this host. The port is
    that of the lead's endpoint. If empty, followers connect to that endpoint."""
    one_per_node: bool = False
    """Off by default, because all nodes are this host and share its cores."""

    retired: ClassVar[Mapping[str, str]] = {
        **PodSettings.retired,
        "dir": "remove it once no burst lives: the files are in /tmp/burst-UID",
        "internal": "remove it, and run the daemon on the host of docker; or write a"
        " table of type kube with what `kind get kubeconfig --internal` prints",
        "kind": "remove it: the program is found by the daemon's PATH",
        "node_image": f"{_IN_CONFIG}, as image of each of nodes",
        "nodes": f"{_IN_CONFIG}, as nodes: a control-plane and workers",
        "pod_subnet": f"{_IN_CONFIG}, as networking.podSubnet",
        "service_subnet": f"{_IN_CONFIG}, as networking.serviceSubnet",
    }


def is_archive(image: str) -> bool:
    """Tell whether an entry of `images` is an archive, and not an image of docker."""
    return image.endswith(_ARCHIVES)
