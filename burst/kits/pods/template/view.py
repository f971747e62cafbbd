# SPDX-License-Identifier: MIT
"""`view` with form job: an init container copies Flux out of an image of its own.

The image of the application then needs no Flux, only what any Flux needs: a C library
that is not older than that of the view's, a shell, and a name for the user. The
operator has an init container of its own.
"""

from __future__ import annotations

from burst.kits.kube.kinds import Manifest
from burst.kits.pods.offer_table import OfferTable
from burst.kits.pods.settings import PodSettings
from burst.kits.pods.template import pod
from burst.kits.pods.template.containers import VIEW
from burst.kits.pods.template.mount_paths import VIEW_COPY_PATH
from burst.kits.pods.template.view_paths import split_view_path, targets_of

_OF_A_COPY = ("cpu", "memory")


def has_view(settings: PodSettings) -> bool:
    """Tell whether pods of the Job form take Flux from a view."""
    return bool(settings.view) and settings.form == "job"


def view_containers(table: OfferTable, settings: PodSettings) -> list[Manifest]:
    """Return the init container that copies Flux, if there is a view."""
    if not has_view(settings):
        return []
    # Of two directories that the pattern names, neither is taken for the other.
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
        "imagePullPolicy": settings.image_pull,
        "command": ["/bin/sh", "-ec", "".join(lines)],
        # A quota may demand them of each container. Init containers end before the
        # broker starts, so the pod needs no more than that.
        "resources": {
            kind: {key: most for key, most in amounts.items() if key in _OF_A_COPY}
            for kind, amounts in wanted.items()
        },
        "securityContext": pod.container_security(settings),
        # `burst status` then says what cp said.
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            {"name": f"view-{number}", "mountPath": f"{VIEW_COPY_PATH}/{number}"}
            for number in range(len(settings.view_paths))
        ],
    }
    return [made]


def view_volumes(settings: PodSettings) -> list[Manifest]:
    """Return the volumes of a pod for what is copied."""
    if not has_view(settings):
        return []
    count = len(settings.view_paths)
    return [{"name": f"view-{number}", "emptyDir": {}} for number in range(count)]


def view_mounts(settings: PodSettings) -> list[Manifest]:
    """Return a container's volumeMounts of what was copied, read-only."""
    if not has_view(settings):
        return []
    return [
        {"name": f"view-{number}", "mountPath": path, "readOnly": True}
        for number, path in enumerate(targets_of(settings.view_paths))
    ]


def find_view(settings: PodSettings) -> str:
    """Return lines for sh by which `flux` and its Python are those of the view.

    The name of Python's directory has its minor version in it. Added to what the image
    has; the environment of jobs is their own.
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
    """Return Flux's program in a follower, for a command that is run from outside."""
    if has_view(settings) and "/" not in settings.flux:
        return f"{targets_of(settings.view_paths)[0]}/bin/{settings.flux}"
    return settings.flux


def _sources(settings: PodSettings) -> list[str]:
    return [split_view_path(entry)[0] for entry in settings.view_paths]
