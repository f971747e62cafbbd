# SPDX-License-Identifier: MIT
"""What is known of providers of type flux before one is made."""

from __future__ import annotations

from burst.provider_type import ProviderType, TableRequest

_TABLE = """\
[providers.flux]
# A burst is one job of another Flux instance. `burst doctor` says what is missing.
type = "flux"
# Fill in. The other instance, and a directory that this host and the nodes share at the
# same path, which only the daemon's user may write.
# uri = "ssh://login.example.org/run/flux/local"
# dir = "/shared/flux/bursts"
# By default those of the other instance.
# queue = "batch"
# bank = "physics"
# What each node has, as R declares for a node of a rank slot.
cores = {cores}
gpus = {gpus}
# The most followers of one burst.
max_nodes = {nodes}
# The longest that a burst lives, and the time limit of its job.
time = "4h"
# How long its job may be pending. That counts against [deadlines] lease.
provision = "1h"
"""


class FluxType(ProviderType):
    """Jobs of another Flux instance."""

    def table_template(self, wanted: TableRequest) -> str:
        """Return the table, without what only the site knows."""
        shape = wanted.shape
        return _TABLE.format(cores=shape.cores, gpus=shape.gpus, nodes=wanted.nodes)


TYPE = FluxType()
