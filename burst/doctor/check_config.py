# SPDX-License-Identifier: MIT
"""Checks what the configuration of an instance says about nodes, and runs on them.

Sources: flux-config-job-manager(5), flux-config-resource(5), perilog.c and
housekeeping.c of the job manager of flux-core.
"""

from __future__ import annotations

import os
import shlex
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


_PLUGIN = "perilog.so"
"""A plugin of the job manager; without it there is neither prolog nor epilog."""


def check_job_scripts(config: Mapping[str, Any]) -> Iterator[Finding]:
    """Name the scripts that run on each node of a job, and so on lent nodes, too.

    `config` is the configuration of the lead.
    """
    imp = str(config.get("exec", {}).get("imp", ""))
    table = config.get("job-manager", {})
    found = [
        f"{name} ({_command(name, table[name], imp)})"
        for name in _names(table)
        if name in table
    ]
    if found:
        yield note(
            "for each job, Flux runs on lent nodes what it runs on the site's own:"
            f" {', '.join(found)}. A node on which one fails or cannot be started may"
            " be drained, and a burst whose prolog fails runs no job",
            "install on lent nodes what these need, or make them do nothing there"
            " (docs/lent-nodes.md)",
        )


def _names(table: Mapping[str, Any]) -> Iterator[str]:
    """Name the scripts that run where the job does; others run on the lead's host."""
    loaded = {
        os.path.basename(str(plugin.get("load", "")))
        for plugin in table.get("plugins", ())
    }
    for name in ("prolog", "epilog"):
        if _PLUGIN in loaded and table.get(name, {}).get("per-rank") is True:
            yield name
    yield "housekeeping"


def _command(name: str, table: Mapping[str, Any], imp: str) -> str:
    """Return the command that Flux runs; without one, the IMP runs the site's own."""
    return shlex.join(map(str, table.get("command") or (imp, "run", name)))
