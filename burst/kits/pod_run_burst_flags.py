# SPDX-License-Identifier: MIT
"""Flags of `run-burst` for providers whose followers are pods.

Not in `burst.kits.pods`, which imports the Kubernetes client: `run-burst --help` must
work without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from burst.run_burst_flags import ProviderFlag


class PodFlags:
    """The keys of `PodSettings` that a burst by hand may need to set."""

    flags: Sequence[ProviderFlag] = (
        ProviderFlag("namespace", "Namespace of the followers' pods."),
        ProviderFlag("image", "Image of the followers, with the lead's Flux version."),
        ProviderFlag(
            "flux-operator-yaml",
            "Manifests of the Flux Operator, which is installed and used.",
            is_file=True,
        ),
    )

    def options(
        self, given: Mapping[str, str], table: Mapping[str, Any], nodes: int
    ) -> dict[str, Any]:
        """Return the table with what the flags say. `nodes` has no effect."""
        del nodes
        found = dict(table)
        found |= {key: given[key] for key in ("namespace", "image") if key in given}
        operator = given.get("flux-operator-yaml")
        if operator:
            path = str(Path(operator).absolute())
            found |= {"form": "operator", "operator_yaml": path}
        return found

    def notes(self, given: Mapping[str, str]) -> Sequence[str]:
        """Say that the operator is not deleted with the burst."""
        operator = given.get("flux-operator-yaml")
        if not operator:
            return []
        return [
            f"--flux-operator-yaml {operator}: applied where the cluster has no Flux"
            " Operator; the operator stays when the burst is deleted"
        ]


FLAGS = PodFlags()
