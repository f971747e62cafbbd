# SPDX-License-Identifier: MIT
"""What is known of providers of type slurm before one is made."""

from __future__ import annotations

from burst.provider_type import ProviderType, TableRequest

_TABLE = """\
[providers.slurm]
# A burst is one Slurm job. `burst doctor` says what is missing.
type = "slurm"
# Fill in. A directory that this host and the nodes share at the same path, which only
# the daemon's user may write.
# dir = "/shared/flux/bursts"
# By default Slurm's own.
# partition = "batch"
# account = "physics"
# What each node has, as R declares for a node of a rank slot.
cores = {cores}
gpus = {gpus}
# The most followers of one burst.
max_nodes = {nodes}
# The longest that a burst lives: at most what the partition allows.
time = "4h"
# How long its job may be pending. That counts against [deadlines] lease.
provision = "1h"
"""


class SlurmType(ProviderType):
    """Jobs of a Slurm cluster."""

    def table_template(self, wanted: TableRequest) -> str:
        """Return the table, without what only the site knows."""
        shape = wanted.shape
        return _TABLE.format(cores=shape.cores, gpus=shape.gpus, nodes=wanted.nodes)


TYPE = SlurmType()
