# SPDX-License-Identifier: MIT
"""The `kind` provider type: what is known before a provider is made."""

from __future__ import annotations

from burst.kits.pod_type import PodType

_TABLE = """\
[providers.kind]
# Followers are pods of a kind cluster. It is made with the first burst, and deleted
# with the last.
type = "kind"
create = true
{image}# If docker on this host has it:
# images = ["local/flux:0.88"]
# Followers connect to this host in kind's docker network: the lead must listen there.
lead = "host"
"""

TYPE = PodType(kind="kind", table=_TABLE)
