# SPDX-License-Identifier: MIT
"""What is known of providers of type command before one is made."""

from __future__ import annotations

from burst.provider_type import ProviderType, TableRequest

_TABLE = """\
[providers.command]
# Nodes come from a program of the site. `burst provider check` tries it.
type = "command"
# Fill in. The program (docs/command.md), and a directory that this host and the nodes
# share at the same path, which only the daemon's user may write.
# program = ["/etc/flux/burst-nodes"]
# dir = "/shared/flux/bursts"
# What each node has, as R declares for a node of a rank slot.
cores = {cores}
gpus = {gpus}
# The most followers of one burst.
max_nodes = {nodes}
# How long the site lets such nodes live. By default without an end.
# lifetime = "12h"
"""


class CommandType(ProviderType):
    """Nodes by a site's own program."""

    def table_template(self, wanted: TableRequest) -> str:
        """Return the table, without what only the site knows."""
        shape = wanted.shape
        return _TABLE.format(cores=shape.cores, gpus=shape.gpus, nodes=wanted.nodes)


TYPE = CommandType()
