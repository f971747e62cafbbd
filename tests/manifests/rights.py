# SPDX-License-Identifier: MIT
"""All that the daemon asks of an API server in a namespace, whichever the form."""

from __future__ import annotations

from burst.kits.kube.kinds import (
    CONFIG_MAP,
    JOB,
    MINICLUSTER,
    POD,
    SECRET,
    SERVICE,
)
from burst.kits.pods.examine import needed_rights

_MADE = (JOB, POD, CONFIG_MAP, SECRET, SERVICE)
NEEDED = {
    (kind.group, f"{kind.plural}/{part}" if part else kind.plural, verb)
    for kinds in (_MADE, (MINICLUSTER, *_MADE))
    for verb, kind, part in needed_rights(kinds)
}
"""API group, resource, verb. Learning the lead's address needs none besides: it gets a
Service and lists pods."""
