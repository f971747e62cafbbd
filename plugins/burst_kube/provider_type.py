# SPDX-License-Identifier: MIT
"""The `kube` provider type: what is known before a provider is made."""

from __future__ import annotations

from burst.kits.pod_type import IMAGE, PodType, pod_offer
from burst.provider_type import TableRequest

_TABLE = """\
[providers.kube]
# Followers are pods of a cluster that exists. `burst doctor` says what is missing.
type = "kube"
{image}# By default KUBECONFIG, ~/.kube/config, or in a pod its service account.
# kubeconfig = "/etc/burst/kubeconfig"
# context = "far"
# namespace = "default"
"""


class KubeType(PodType):
    """Pods of a cluster that exists."""

    def table_template(self, wanted: TableRequest) -> str:
        """Return the table of a provider in a cluster."""
        return _TABLE.format(image=IMAGE) + pod_offer("kube", wanted)


TYPE = KubeType()
