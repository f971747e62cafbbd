# SPDX-License-Identifier: MIT
"""Checks how Flux compares the declared resources of nodes with what it finds there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from burst.config import Settings
from burst.flux_setup.site_tables import verify_without_names
from burst.model.finding import Finding, note, wrong
from burst.provider_type import on_own_host


def _ignores_names_alone(verify: Any) -> bool:
    """Tell whether all but host names is compared, as `burst setup` configures it."""
    if not isinstance(verify, Mapping) or verify.get("hostname") != "ignore":
        return False
    return bool(verify.get("default", "strict") != "ignore")


def check_resources(config: Mapping[str, Any], settings: Settings) -> Iterator[Finding]:
    """Find settings by which Flux drains followers at once, or overlooks wrong nodes.

    A node that differs from what `[resource]` declares is drained when its broker
    starts (flux-config-resource(5), `verify`).
    """
    table = config.get("resource", {})
    here = ", ".join(
        name
        for name, each in settings.providers.items()
        if each.enabled and on_own_host(each.type)
    )
    needed = verify_without_names(config)
    if here and needed:
        keys = ", ".join(f'{name} = "{mode}"' for name, mode in needed.items())
        yield wrong(
            "Flux compares the names of hosts with [resource], so it drains followers"
            f" of provider {here}, which are on a host of another name",
            f"`burst setup` writes [resource.verify] {keys}; or write it yourself; then"
            " restart the lead",
        )
    if _ignores_names_alone(table.get("verify")):
        again = "run `burst setup` again and restart Flux"
        yield note(
            "Flux does not compare names of hosts with [resource] ([resource.verify]"
            ' hostname = "ignore"), so it would not drain an own node that has the name'
            " of another",
            f"followers of provider {here} need it; once there are none, {again}"
            if here
            else f"no provider needs it any more: {again}, unless the site wrote it for"
            " itself",
        )
    if table.get("config") and table.get("path"):
        yield note(
            "[resource] has a path, which Flux does not read, as there is"
            " [[resource.config]] too",
            "take the path out, so that nobody changes the wrong one",
        )
