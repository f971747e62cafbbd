# SPDX-License-Identifier: MIT
"""What admission says of pods that it denies, as clusters have said it."""

SCC = (
    'pods "b-0-" is forbidden: unable to validate against any security context'
    ' constraint: [provider "anyuid": Forbidden: not usable by user or serviceaccount,'
    " provider restricted-v2: .containers[0].runAsUser: Invalid value: 1000: must be in"
    ' the ranges: [1000680000, 1000689999], provider "restricted": Forbidden: not'
    ' usable by user or serviceaccount, provider "nonroot-v2": Forbidden: not usable by'
    " user or serviceaccount]"
)
WARDEN = (
    'admission webhook "warden-validating.common-webhooks.networking.gke.io" denied the'
    " request: GKE Warden rejected the request because it violates one or more"
    ' constraints.\nViolations details: {"[denied by'
    ' autogke-node-affinity-selector-limitation]":["Auto GKE disallows use of'
    " cluster-autoscaler.kubernetes.io/safe-to-evict=false annotation on"
    ' workloads"]}\nRequested by user:'
    " 'system:serviceaccount:kube-system:job-controller', groups:"
    " 'system:serviceaccounts,system:authenticated'."
)
KYVERNO = (
    'admission webhook "validate.kyverno.svc-fail" denied the request: \n\nresource'
    " Pod/jobs/b-0 was blocked due to the following policies \n\nrequire-labels:\n "
    " check-team: 'validation error: label team was not found'"
)
RULES: list[tuple[str, str, str]] = [
    (SCC, "1000680000, 1000689999", "set user to a number in the range"),
    (WARDEN, "safe-to-evict=false annotation on workloads", "Autopilot has no exc"),
    (KYVERNO, "label team was not found", "who maintains validate.kyverno.svc-fail"),
    (
        'admission webhook "validation.gatekeeper.sh" denied the request: [psp-caps]'
        " container <b> has a disallowed capability",
        "[psp-caps]",
        "validation.gatekeeper.sh for an exception",
    ),
    (
        "pods \"b-0-x\" is forbidden: ValidatingAdmissionPolicy 'no-root' with binding"
        " 'all' denied request: failed expression: object.spec.x == 1",
        "failed expression: object.spec.x",
        "who maintains no-root",
    ),
    (
        "pods \"b-0-x\" is forbidden: ValidatingAdmissionPolicy 'freeze' with binding"
        " 'all' denied request: no new pods while nodes are replaced, try again later",
        "while nodes are replaced, try again later",
        "who maintains freeze",
    ),
    (
        'pods "b-0" is forbidden: failed quota: q: must specify limits.cpu',
        "must specify limits.cpu",
        "LimitRange that sets a default",
    ),
    (
        'pods "b-0" is forbidden: violates PodSecurity "restricted:latest":'
        " runAsNonRoot != true",
        '"restricted:latest": runAsNonRoot',
        "pod-security.kubernetes.io/enforce",
    ),
    (
        'pods "b-0" is forbidden: [maximum cpu usage per Container is 1, but limit is'
        " 2, maximum memory usage per Pod is 1Gi, but limit is 4Gi]",
        "maximum cpu usage per Container is 1, but limit is 2",
        "what the LimitRange allows",
    ),
]
"""The text, the rule in it, and a part of the advice."""

LACKS = [
    'pods "b-0" is forbidden: error looking up service account jobs/flux:'
    ' serviceaccount "flux" not found',
    'pods "b-0" is forbidden: no PriorityClass with name high was found',
    'pods "b-0" is forbidden: status unknown for quota: small, resources: pods',
    "the door is closed",
]
