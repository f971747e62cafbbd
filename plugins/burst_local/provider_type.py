# SPDX-License-Identifier: MIT
"""The `local` provider type: what is known before a provider is made."""

from __future__ import annotations

from burst.provider_type import ProviderType, TableRequest

_TABLE = """\
[providers.local]
# Followers are processes on the lead's own host.
type = "local"
{place}# The most followers of all bursts together.
max_nodes = {total}
# What each follower offers. All followers share the cores of this host.
cores = {cores}
gpus = {gpus}
"""
_PLACE = """\
# Made by burst.service: no other user can make it first, as in /tmp.
dir = "{place}"
"""


class LocalType(ProviderType):
    """Processes of the lead's own host."""

    own_host = True

    def table_template(self, wanted: TableRequest) -> str:
        """Return the table of a provider that can fill every rank."""
        shapes = [each.shape for each in wanted.each]
        return _TABLE.format(
            total=wanted.total,
            # Followers are not bound to cores: this serves every smaller shape too.
            cores=max(shape.cores for shape in shapes),
            gpus=max(shape.gpus for shape in shapes),
            place=_PLACE.format(place=wanted.place) if wanted.place else "",
        )


TYPE = LocalType()
