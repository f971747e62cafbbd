# SPDX-License-Identifier: MIT
"""The `slurm` provider type: what is known before a provider is made."""

from __future__ import annotations

from burst.kits.node_type import NodeType

_FIRST = """\
[providers.slurm]
# A burst is one Slurm job. `burst doctor` says what is missing.
type = "slurm"
# Fill in. A directory that this host and the nodes share at the same path, which only
# the daemon's user may write.
# dir = "/shared/flux/bursts"
# By default Slurm's own.
# partition = "batch"
# account = "physics"
"""
_LAST = """\
# The longest that a burst lives: at most what the partition allows.
time = "4h"
# How long its job may be pending. That counts against [deadlines] lease.
provision = "1h"
"""

TYPE = NodeType(_FIRST, _LAST)
