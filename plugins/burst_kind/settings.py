# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "kind"`."""

from __future__ import annotations

from typing import Annotated

import msgspec

from burst.kits.pods import PodSettings

_ARCHIVES = (".tar", ".tar.gz", ".tgz")
_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]


class KindSettings(PodSettings, frozen=True, kw_only=True):
    """The keys of any cluster (`burst.kits.pods`), and which cluster this is."""

    cluster: str = ""
    """A kind cluster that exists (`kind get clusters`). With `create`, the name of the
    new one, to which a hash is added; by default the provider's."""
    create: bool = False
    """Make a cluster for the first burst and delete it with the last. Only such a
    cluster is ever deleted: its name ends in a hash of owner and provider. A change of
    the keys below is used for the next cluster."""
    nodes: _AtLeast1 = 1
    """1: a control plane that runs followers too. More: that many workers and a
    control plane."""
    node_image: str = ""
    """As in `kind create cluster --image`; default: that of the kind program."""
    pod_subnet: str = "10.245.0.0/16"
    """Addresses of pods. Not kind's own default, so that a lead in a kind cluster has
    others."""
    service_subnet: str = "10.97.0.0/16"
    """Addresses of Services. Not kind's own default, for the same reason."""
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
    kind: str = "kind"
    """The program, by name or path. It finds docker on PATH, and by DOCKER_HOST."""
    internal: bool = False
    """Connect to the API server in kind's docker network: for a daemon in docker."""
    dir: str = ""
    """Where kubeconfig and log of the cluster are; `/tmp/burst-UID` by default. Change
    it only while no burst lives."""


def is_archive(image: str) -> bool:
    """Tell whether an entry of `images` is a file; else docker has it."""
    return image.endswith(_ARCHIVES)
