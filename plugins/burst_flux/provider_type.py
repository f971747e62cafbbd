# SPDX-License-Identifier: MIT
"""The `flux` provider type: what is known before a provider is made."""

from __future__ import annotations

from burst.kits.node_type import NodeType

_FIRST = """\
[providers.flux]
# A burst is one job of another Flux instance. `burst doctor` says what is missing.
type = "flux"
# Fill in. The other instance, and a directory that this host and the nodes share at the
# same path, which only the daemon's user may write.
# uri = "ssh://login.example.org/run/flux/local"
# dir = "/shared/flux/bursts"
# By default those of the other instance.
# queue = "batch"
# options = ["--bank=physics"]
"""
_LAST = """\
# The longest that a burst lives, and the time limit of its job.
time = "4h"
# How long its job may be pending. That counts against [deadlines] lease.
provision = "1h"
"""

TYPE = NodeType(_FIRST, _LAST)
