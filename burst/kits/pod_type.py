# SPDX-License-Identifier: MIT
"""Base class of the types of providers of pods: flags, options and table templates.

It is not in `burst.kits.pods`, which imports the Kubernetes client: `run-burst --help`
and `burst lead init` must work without the client.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from burst.provider_type import ProviderFlag, ProviderType, TableRequest

if TYPE_CHECKING:
    from burst.kits.pods.diagnose.own_image import OwnImage

_IMAGE = """\
# Fill in. Its Flux has the lead's major and minor version.
# image = "registry.example.org/flux:0.88.0"
"""
_OFFER = """
[providers.{kind}.offers.{name}]
# What each follower has, as R declares for a node of a rank slot.
cores = {cores}
gpus = {gpus}
# The most followers of one burst.
max_nodes = {nodes}
# What its pod requests, as a node keeps some of its CPU for itself.
# cpu = "{cpu}m"
"""


def _own_image() -> OwnImage:
    # Imported here, as it imports the Kubernetes client.
    from burst.kits.pods.diagnose.own_image import find_own_image  # noqa: PLC0415

    return find_own_image()


class PodType(ProviderType):
    """Flags for the keys of `PodSettings` that a burst made by hand may need to set."""

    def __init__(
        self,
        own_image: Callable[[], OwnImage] = _own_image,
        *,
        kind: str = "",
        table: str = "",
        more: str = "",
    ) -> None:
        """`own_image` returns the image of the lead's pod, the default of `--image`.

        With `kind`, the type's name, there is a table template: `table`, with `{image}`
        for the lines about the image, and offers, each with `more` at its end.
        """
        self._own_image = own_image
        self._kind, self._table, self._more = kind, table, more

    flags: Sequence[ProviderFlag] = (
        ProviderFlag("namespace", "Namespace of the followers' pods."),
        ProviderFlag(
            "image",
            "Image of the followers, with the lead's Flux version. Default: that of the"
            " provider's table, else that of the pod in which this command runs.",
        ),
        ProviderFlag(
            "flux-operator-yaml",
            "Manifests of the Flux Operator, to install and use it. Default:"
            " operator_yaml of the provider's table; with neither, followers are the"
            " pods of a Job, and no operator is needed.",
            is_file=True,
        ),
        ProviderFlag(
            "munge-key",
            "Key of the lead's munged, for a munged beside each broker.",
            is_file=True,
        ),
    )

    def options(
        self, given: Mapping[str, str], table: Mapping[str, Any], nodes: int
    ) -> dict[str, Any]:
        """Return the table with the values of the flags. `nodes` has no effect.

        If no image is set, it is the image of the pod in which this process runs.
        Raises ConfigError, and Transient or Refused from the request to the cluster.
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
        """Report which image and key are used, and that the operator is not deleted."""
        operator = given.get("flux-operator-yaml")
        found = []
        if "image" not in given and "image" in options:
            found.append(
                f"followers run image {options['image']}; --image names another"
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

    def table_template(self, wanted: TableRequest) -> str:
        """Return the table, with an offer for each shape that R declares."""
        if not self._kind:
            return super().table_template(wanted)
        offers = (
            _OFFER.format(
                kind=self._kind,
                name=each.name,
                cores=each.shape.cores,
                gpus=each.shape.gpus,
                nodes=each.nodes,
                cpu=max(1, each.shape.cores * 1000 - 500),
            )
            + self._more
            for each in wanted.each
        )
        return "".join((self._table.format(image=_IMAGE), *offers))

    def _own(self) -> dict[str, str]:
        """Return the keys `image` and `view` with the values of the lead's own pod."""
        own = self._own_image()
        return {"image": own.image, **({"view": own.view} if own.view else {})}
