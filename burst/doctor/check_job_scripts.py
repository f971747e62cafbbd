# SPDX-License-Identifier: MIT
"""Tells which scripts of the site Flux will run on lent nodes.

Sources: flux-config-job-manager(5), perilog.c and housekeeping.c of flux-core's job
manager.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from burst.model.finding import Finding, note

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
