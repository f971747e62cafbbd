# SPDX-License-Identifier: MIT
"""The keys of `[providers.NAME]` with `type = "kind"`."""

from __future__ import annotations

from typing import Annotated

import msgspec

from burst.kits.pods import PodSettings

_AtLeast1 = Annotated[int, msgspec.Meta(ge=1)]


class KindSettings(PodSettings, frozen=True, kw_only=True):
    """What any cluster has (`burst.kits.pods`), and where this one is from."""

    cluster: str = ""
    """A kind cluster that exists (`kind get clusters`). With `create`, what ours is
    called before the hash that tells it from others; by default as the provider."""
    create: bool = False
    """Make a cluster for the first burst and delete it with the last. It is only ever
    one that was made so: its name ends in a hash of owner and provider. What follows
    about it holds for the next one when it is changed."""
    nodes: _AtLeast1 = 1
    """1: a control plane that runs followers too. More: that many workers besides."""
    node_image: str = ""
    """As in `kind create cluster --image`; default: that of the kind program."""
    pod_subnet: str = "10.245.0.0/16"
    service_subnet: str = "10.97.0.0/16"
    """Neither is kind's own default, so that a lead in a kind cluster has others."""
    manifests: tuple[str, ...] = ()
    """YAML files applied to the new cluster: a namespace, the Flux Operator."""
    images: tuple[str, ...] = ()
    """Loaded into the cluster's nodes before any burst is made: archives, which end in
    .tar, .tar.gz or .tgz, and images of this host's docker."""
    lead: str = ""
    """Whose address followers connect to, at the port of the lead's endpoint: a
    container in kind's docker network, such as `NAME-control-plane` of the cluster that
    the lead is in, or `host`, which is this one. By default as the lead says."""
    one_per_node: bool = False
    """Its nodes are all this host, so several followers on one lose nothing."""
    kind: str = "kind"
    """The program, by name or path. It finds docker on PATH, and by DOCKER_HOST."""
    internal: bool = False
    """Reach the API server in kind's docker network: for a daemon in a container."""
    dir: str = ""
    """Where kubeconfig and log of the cluster are; `/tmp/burst-UID` by default. Change
    it only while no burst lives."""
