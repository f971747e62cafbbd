# SPDX-License-Identifier: MIT
"""The type of providers with NodeSettings, which has the template of their table."""

from __future__ import annotations

from burst.provider_type import ProviderType, TableRequest

_NODES = """\
# What each node has, as R declares for a node of a rank slot.
cores = {cores}
gpus = {gpus}
# The most followers of one burst.
max_nodes = {nodes}
"""


class NodeType(ProviderType):
    """A type of providers with one offer of equal nodes."""

    def __init__(self, first: str, last: str) -> None:
        """`first` and `last` are the table's lines before and after those of the nodes.

        They leave out what only the site knows.
        """
        self._first, self._last = first, last

    def table_template(self, wanted: TableRequest) -> str:
        """Return the template of the provider's table."""
        shape, nodes = wanted.shape, wanted.nodes
        lines = _NODES.format(cores=shape.cores, gpus=shape.gpus, nodes=nodes)
        return self._first + lines + self._last
