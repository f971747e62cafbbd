# SPDX-License-Identifier: MIT
"""`view` with form job: an init container copies Flux out of an image of its own.

The image of the application then needs no Flux, only what any Flux needs: a C library
that is not older than the view's, a shell, and a name for the user. With form operator
the operator's own init container does this.
"""

from __future__ import annotations

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.offer_table import OfferTable
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template import pod
from burst.kits.pods.template.containers import VIEW
from burst.kits.pods.template.mount_paths import VIEW_COPY_PATH
from burst.kits.pods.template.site_pod import pull_policy
from burst.kits.pods.template.view_paths import split_view_path, targets_of

_OF_A_COPY = ("cpu", "memory")


def has_view(settings: PodSettings) -> bool:
    """Tell whether a view has to be copied: it is set, and the form is job."""
    return bool(settings.view) and settings.form == "job"


def view_containers(table: OfferTable, settings: PodSettings) -> list[Manifest]:
    """Return the init container that copies Flux; none without a view."""
    if not has_view(settings):
        return []
    # It is an error if a pattern matches several directories or none.
    lines = [
        f"set -- {source}\n"
        f'test $# = 1 || {{ echo "view_paths[{number}]: there are $#: $*"; exit 1; }}\n'
        f'cp -R "$1/." {VIEW_COPY_PATH}/{number}\n'
        for number, source in enumerate(_sources(settings))
    ]
    wanted = pod.resources(table, settings)
    made = {
        "name": VIEW,
        "image": settings.view,
        "imagePullPolicy": pull_policy(settings.pod),
        "command": ["/bin/sh", "-ec", "".join(lines)],
        # A quota may demand resources of each container. The pod's total does not grow,
        # as init containers end before the broker starts.
        "resources": {
            kind: {key: most for key, most in amounts.items() if key in _OF_A_COPY}
            for kind, amounts in wanted.items()
        },
        "securityContext": pod.container_security(settings),
        # `burst status` then shows the error of cp.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": f"view-{number}", "mountPath": f"{VIEW_COPY_PATH}/{number}"}
            for number in range(len(settings.view_paths))
        ],
    }
    return [made]


def find_view(settings: PodSettings) -> str:
    """Return lines for sh that put the view's `flux` and Python modules on the paths.

    They are put before the image's own paths. The name of Python's directory contains
    its minor version. Jobs have an environment of their own.
    """
    if not has_view(settings):
        return ""
    prefix = targets_of(settings.view_paths)[0]
    return f"""\
export PATH="{prefix}/bin${{PATH:+:$PATH}}"
for modules in {prefix}/lib/python3*/site-packages; do
    export PYTHONPATH="$modules${{PYTHONPATH:+:$PYTHONPATH}}"
done
"""


def flux_of(settings: PodSettings) -> str:
    """Return the path or name of `flux` in a follower, for `kubectl exec`."""
    if has_view(settings) and "/" not in settings.flux:
        return f"{targets_of(settings.view_paths)[0]}/bin/{settings.flux}"
    return settings.flux


def _sources(settings: PodSettings) -> list[str]:
    return [split_view_path(entry)[0] for entry in settings.view_paths]
