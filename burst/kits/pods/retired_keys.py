# SPDX-License-Identifier: MIT
"""Keys of earlier versions, most of which `pod`, a part of a template, replaces."""

from __future__ import annotations

from collections.abc import Mapping

_SPEC = "write it in the words of Kubernetes, in [providers.NAME.pod.spec]: "
_MOUNTED = (
    "write it in the words of Kubernetes, in [providers.NAME.pod.spec]: a volume in"
    " volumes, and where it is mounted in volumeMounts of the container broker"
)
NODE_SELECTOR = f"{_SPEC}nodeSelector"
"""The advice for `node_selector`; for an offer it names the offer's own `pod`."""
POD_WORDS: Mapping[str, str] = {
    "cluster_domain": "remove it: it is cluster.local",
    "environment": f"{_SPEC}env of the container broker, each with name and value",
    "grace": f"{_SPEC}terminationGracePeriodSeconds",
    "node_selector": NODE_SELECTOR,
    "pull_secrets": f"{_SPEC}imagePullSecrets, each with a name",
    "python": "remove it: it is the python3 on the image's PATH",
    "scratch": f"{_MOUNTED}; it was an emptyDir with a sizeLimit at /scratch, and"
    " ephemeral-storage in the requests of that container's resources",
    "scratch_path": f"{_MOUNTED}, as mountPath",
    "service_account": f"{_SPEC}serviceAccountName",
    "settle": "remove it: a MiniCluster has to have no objects for 2s",
    "shm": f"{_MOUNTED}; it was an emptyDir with medium Memory and a sizeLimit at"
    " /dev/shm",
    "timeout": "remove it: a request to the API server may take 30s",
    "tolerations": f"{_SPEC}tolerations",
    "volumes": _MOUNTED,
}
