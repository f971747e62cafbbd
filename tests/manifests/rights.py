# SPDX-License-Identifier: MIT
"""All that the daemon asks of an API server, by namespace and form."""

from burst.kits.kube.kinds import EVENT
from burst.kits.pods.diagnose.examine import needed_rights
from burst.kits.pods.settings import PodForm

Right = tuple[str, str, str]
"""API group, resource, verb."""


def needed(form: PodForm) -> set[Right]:
    """Return what the daemon asks in a namespace into which it bursts."""
    return {
        (kind.group, f"{kind.plural}/{part}" if part else kind.plural, verb)
        for verb, kind, part in (*needed_rights(form), ("create", EVENT, ""))
    }


NEEDED = needed("job")
AT_LEAD = {("", "services", "get"), ("", "pods", "list")}
"""In the lead's namespace: `burst/runtime/lead_service.py` gets one Service and lists
pods."""
