# SPDX-License-Identifier: MIT
"""Flags of `run-burst` for providers whose followers are pods.

Not in `burst.kits.pods`, which imports the Kubernetes client: `run-burst --help` must
work without it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burst.kits.pod_table_template import pod_table
from burst.model.shape import Shape
from burst.run_burst_flags import ProviderFlag

if TYPE_CHECKING:
    from burst.kits.pods.diagnose.own_image import OwnImage


def _own_image() -> OwnImage:
    # It imports the Kubernetes client.
    from burst.kits.pods.diagnose.own_image import find_own_image  # noqa: PLC0415

    return find_own_image()


class PodFlags:
    """The keys of `PodSettings` that a burst by hand may need to set."""

    def __init__(self, own_image: Callable[[], OwnImage] = _own_image) -> None:
        """Take what tells the image of the lead's pod, the default of `--image`."""
        self._own_image = own_image

    flags: Sequence[ProviderFlag] = (
        ProviderFlag("namespace", "Namespace of the followers' pods."),
        ProviderFlag(
            "image",
            "Image of the followers, with the lead's Flux version. Default: that of the"
            " provider's table, else of the pod in which this runs.",
        ),
        ProviderFlag(
            "flux-operator-yaml",
            "Manifests of the Flux Operator, which is installed and used. Default:"
            " operator_yaml of the provider's table; with neither, followers are the"
            " pods of a Job, and no operator is needed.",
            is_file=True,
        ),
        ProviderFlag(
            "munge-key",
            "Key of the lead's munged, for one beside each broker.",
            is_file=True,
        ),
    )

    def options(
        self, given: Mapping[str, str], table: Mapping[str, Any], nodes: int
    ) -> dict[str, Any]:
        """Return the table with what the flags say. `nodes` has no effect.

        Without an image it is that of the pod in which this runs. Raises ConfigError,
        and what asking the cluster raises: Transient, Refused.
        """
        del nodes
        found = dict(table)
        found |= {key: given[key] for key in ("namespace", "image") if key in given}
        operator = given.get("flux-operator-yaml")
        if operator:
            path = str(Path(operator).absolute())
            found |= {"form": "operator", "operator_yaml": path}
        if key := given.get("munge-key"):
            found["munge_key"] = str(Path(key).absolute())
        return found if found.get("image") else found | self._own()

    def notes(
        self, given: Mapping[str, str], options: Mapping[str, Any]
    ) -> Sequence[str]:
        """Say which image and key are used, and that the operator is not deleted."""
        operator = given.get("flux-operator-yaml")
        found = []
        if "image" not in given and "image" in options:
            found.append(
                f"followers run image {options['image']}; --image says another"
            )
        if operator:
            found.append(
                f"--flux-operator-yaml {operator}: applied where the cluster has no"
                " Flux Operator; the operator stays when the burst is deleted"
            )
        if "munge-key" in given:
            found.append(
                f"--munge-key {given['munge-key']}: goes into the burst's Secret, and a"
                " munged of the image runs with it beside each broker; brokers"
                " themselves authenticate with the lead's CURVE certificate only"
            )
        return found

    def table_template(self, kind: str, shape: Shape, nodes: int) -> str:
        """Return the table of a provider with pods; see `TableTemplate`."""
        return pod_table(kind, shape, nodes)

    def _own(self) -> dict[str, str]:
        """Return the keys of the image of the lead's own pod, and of its view."""
        own = self._own_image()
        return {"image": own.image, **({"view": own.view} if own.view else {})}


FLAGS = PodFlags()
