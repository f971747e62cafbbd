# SPDX-License-Identifier: MIT
"""Tables `[providers.NAME]` for `burst lead init`, of providers with pods."""

from __future__ import annotations

from burst.errors import ConfigError
from burst.model.shape import Shape

_IMAGE = """\
# Fill in. Its Flux has the lead's major and minor version.
# image = "registry.example.org/flux:0.88.0"
"""
_KUBE = """\
[providers.kube]
# Followers are pods of a cluster that exists. `burst doctor` says what is missing.
type = "kube"
{image}# By default KUBECONFIG, ~/.kube/config, or in a pod its service account.
# kubeconfig = "/etc/burst/kubeconfig"
# context = "far"
# namespace = "default"
"""
_KIND = """\
[providers.kind]
# Followers are pods of a kind cluster. It is made with the first burst, and deleted
# with the last.
type = "kind"
create = true
{image}# If docker on this host has it:
# images = ["local/flux:0.88"]
# image_pull = "Never"
# Followers connect to this host in kind's docker network: the lead must listen there.
lead = "host"
"""
_OFFER = """
[providers.{kind}.offers.nodes]
# What each follower has, as R declares for a node of a rank slot.
cores = {cores}
gpus = {gpus}
# The most followers of one burst.
max_nodes = {nodes}
# What its pod requests, as a node keeps some of its CPU for itself.
# cpu = "{cpu}m"
"""


def pod_table(kind: str, shape: Shape, nodes: int) -> str:
    """Return the table of a kube or kind provider. Raises ConfigError for another.

    `shape` is what each node must have at least, `nodes` the size of the largest slot.
    """
    texts = {"kube": _KUBE, "kind": _KIND}
    if kind not in texts:
        raise ConfigError(
            f"there is no table for a provider of type {kind}",
            "say --provider none, and write it by hand",
        )
    return texts[kind].format(image=_IMAGE) + pod_offer(kind, shape, nodes)


def pod_offer(kind: str, shape: Shape, nodes: int) -> str:
    """Return the table of an offer with what R declares."""
    return _OFFER.format(
        kind=kind,
        cores=shape.cores,
        gpus=shape.gpus,
        nodes=nodes,
        cpu=max(1, shape.cores * 1000 - 500),
    )
