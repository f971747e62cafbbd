# SPDX-License-Identifier: MIT
"""The `kube` provider type: what is known before a provider is made."""

from __future__ import annotations

from burst.kits.pod_type import PodType

_TABLE = """\
[providers.kube]
# Followers are pods of a cluster that exists. `burst doctor` says what is missing.
type = "kube"
{image}# By default KUBECONFIG, ~/.kube/config, or in a pod its service account.
# kubeconfig = "/etc/burst/kubeconfig"
# context = "far"
# namespace = "default"
"""

TYPE = PodType(kind="kube", table=_TABLE)
