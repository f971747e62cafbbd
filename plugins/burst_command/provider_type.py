# SPDX-License-Identifier: MIT
"""The `command` provider type: what is known before a provider is made."""

from __future__ import annotations

from burst.kits.node_type import NodeType

_FIRST = """\
[providers.command]
# Nodes come from a program of the site. `burst provider check` tries it.
type = "command"
# Fill in. The program (docs/command.md), and a directory that this host and the nodes
# share at the same path, which only the daemon's user may write.
# program = ["/etc/flux/burst-nodes"]
# dir = "/shared/flux/bursts"
"""
_LAST = """\
# How long the site lets such nodes live. By default without an end.
# lifetime = "12h"
"""

TYPE = NodeType(_FIRST, _LAST)
