# SPDX-License-Identifier: MIT
"""The flags of the first experiment's script, as settings of a provider."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import msgspec

from burst.config import ProviderTable
from burst.errors import ConfigError

# Where and on what the experiment ran.
_LOCATION = "us-central1-a"
_MACHINE = "n2-standard-8"


class GkeFlags(msgspec.Struct, frozen=True, kw_only=True):
    """What was given on the command line; empty where nothing was."""

    project: str = ""
    cluster_name: str = ""
    zone: str = ""
    region: str = ""
    machine_type: str = ""
    namespace: str = ""
    image: str = ""
    flux_operator_yaml: Path | None = None
    munge_key: Path | None = None

    @property
    def names_google(self) -> bool:
        """Whether they say that the burst is to be in Google Cloud."""
        place = self.project, self.cluster_name, self.zone, self.region
        return any(place) or bool(self.machine_type)

    @property
    def given(self) -> list[str]:
        """The flags that say something to a provider, as they were typed."""
        found = msgspec.structs.asdict(self)
        del found["munge_key"]
        return [
            f"--{key.replace('_', '-')} {value}"
            for key, value in found.items()
            if value
        ]

    def table(self, base: ProviderTable, nodes: int) -> ProviderTable:
        """Return a provider's table with what the flags say instead of its own.

        `nodes` is how many the burst may have. Raises ConfigError.
        """
        options = {**base.options, **dict(self._anywhere())}
        if base.type == "gke":
            options |= dict(self._in_google())
            options.setdefault("location", _LOCATION)
            if self.machine_type or "offers" not in options:
                kind = self.machine_type or _MACHINE
                machine = {"machine_type": kind, "max_nodes": nodes}
                options["offers"] = {kind: machine}
            for key in ("project", "image"):
                if not options.get(key):
                    raise ConfigError(
                        f"--{key}: is missing",
                        f"give it, or set {key} in the provider's table",
                    )
        elif self.names_google:
            raise ConfigError(
                f"--project and others of Google Cloud say nothing to a provider of"
                f" type {base.type}",
                "leave out --provider, or name one of type gke",
            )
        return msgspec.structs.replace(base, options=options)

    def tell(self) -> Iterator[str]:
        """Yield what should be known before it begins."""
        if self.munge_key:
            yield (
                f"--munge-key {self.munge_key}: not needed and not read: brokers of"
                " this Flux know each other by the lead's CURVE certificate alone"
            )
        if self.flux_operator_yaml:
            yield (
                f"--flux-operator-yaml {self.flux_operator_yaml}: applied where the"
                " cluster has no Flux Operator, and left there"
            )

    def _anywhere(self) -> Iterator[tuple[str, str]]:
        if self.namespace:
            yield "namespace", self.namespace
        if self.image:
            yield "image", self.image
        if self.flux_operator_yaml:
            yield "form", "operator"
            yield "operator_yaml", str(self.flux_operator_yaml.absolute())

    def _in_google(self) -> Iterator[tuple[str, str]]:
        if self.project:
            yield "project", self.project
        if self.cluster_name:
            yield "name_prefix", self.cluster_name
        if self.zone or self.region:
            yield "location", self.region or self.zone
        if self.region and self.zone:
            yield "zone", self.zone


def gke_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the flags; the command gets them as `flags`."""

    @click.option("--project", default="", help="Google Cloud project to burst into.")
    @click.option(
        "--cluster-name",
        default="",
        help="Begins the name of the GKE cluster; the burst's id follows.",
    )
    @click.option("--zone", default="", help=f"Of the cluster. Default: {_LOCATION}.")
    @click.option("--region", default="", help="Of the cluster, instead of a zone.")
    @click.option("--machine-type", default="", help=f"Default: {_MACHINE}.")
    @click.option("--namespace", default="", help="Of the followers' pods.")
    @click.option("--image", default="", help="Of the followers, with the lead's Flux.")
    @click.option(
        "--flux-operator-yaml",
        type=click.Path(path_type=Path, dir_okay=False, exists=True),
        help="The Flux Operator, to be installed and used.",
    )
    @click.option(
        "--munge-key",
        type=click.Path(path_type=Path),
        help="Accepted as before; this Flux needs none.",
    )
    @functools.wraps(function)
    def command(**wanted: Any) -> None:
        found = {key: wanted.pop(key) for key in GkeFlags.__struct_fields__}
        function(flags=GkeFlags(**found), **wanted)

    return command
