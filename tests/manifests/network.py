# SPDX-License-Identifier: MIT
"""What NetworkPolicies allow, as the Kubernetes API defines it (networking.k8s.io/v1).

A pod that no policy selects for a direction is open in it; else what any policy that
selects it allows is allowed.
"""

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

Manifest = Mapping[str, Any]
NAME = "kubernetes.io/metadata.name"
# With their ports: AWS, Azure and Google; GKE with Workload Identity; Azure's wire
# server; Alibaba.
METADATA = (
    *(("169.254.169.254", port) for port in (80, 443, 988)),
    *(("169.254.169.252", port) for port in (987, 988)),
    *(("168.63.129.16", port) for port in (80, 32526)),
    ("100.100.100.200", 80),
    ("fd00:ec2::254", 80),
)


class Peer(msgspec.Struct, frozen=True):
    """The other side: a pod, or an address outside of the cluster."""

    namespace: str = ""
    labels: Mapping[str, str] = {}
    address: str = ""


class Policies:
    """Those of one namespace."""

    def __init__(self, policies: Sequence[Manifest], namespace: str) -> None:
        self._policies = policies
        self._namespace = namespace

    def may(
        self,
        direction: str,
        labels: Mapping[str, str],
        peer: Peer,
        port: int,
        protocol: str = "TCP",
    ) -> bool:
        """Tell whether a pod with these labels may; direction is Egress or Ingress."""
        chosen = [
            policy["spec"]
            for policy in self._policies
            if direction in policy["spec"]["policyTypes"]
            and _selects(policy["spec"]["podSelector"], labels)
        ]
        rules = [rule for spec in chosen for rule in spec.get(direction.lower(), ())]
        side = {"Egress": "to", "Ingress": "from"}[direction]
        return not chosen or any(
            self._is_peer(rule.get(side), peer)
            and _has_port(rule.get("ports"), port, protocol)
            for rule in rules
        )

    def _is_peer(self, peers: Sequence[Manifest] | None, peer: Peer) -> bool:
        # No list means all; an item's selectors must all hold.
        return not peers or any(self._is_one(item, peer) for item in peers)

    def _is_one(self, item: Manifest, peer: Peer) -> bool:
        if "ipBlock" in item:
            block = item["ipBlock"]
            excepted = block.get("except", ())
            inside = [_is_in(peer.address, net) for net in (block["cidr"], *excepted)]
            return inside[0] and not any(inside[1:])
        if not peer.namespace:
            return False
        where = item.get("namespaceSelector")
        if where is None:
            placed = peer.namespace == self._namespace
        else:
            placed = _selects(where, {NAME: peer.namespace})
        return placed and _selects(item.get("podSelector", {}), peer.labels)


def _is_in(address: str, network: str) -> bool:
    return bool(address) and (
        ipaddress.ip_address(address) in ipaddress.ip_network(network)
    )


def _selects(selector: Manifest, labels: Mapping[str, str]) -> bool:
    known = {"matchLabels", "matchExpressions"}
    assert selector.keys() <= known, selector
    equal = selector.get("matchLabels", {})
    asked = selector.get("matchExpressions", ())
    assert all(each["operator"] == "Exists" for each in asked), asked
    return equal.items() <= labels.items() and all(e["key"] in labels for e in asked)


def _has_port(ports: Sequence[Manifest] | None, port: int, protocol: str) -> bool:
    return not ports or any(
        (item["port"], item["protocol"]) == (port, protocol) for item in ports
    )
