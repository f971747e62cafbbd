# SPDX-License-Identifier: MIT
"""All that the daemon asks of an API server in a namespace, whichever the form."""

from __future__ import annotations

from burst.kits.pods.examine import needed_rights
from burst.kits.pods.settings import PodForm

_FORMS: tuple[PodForm, ...] = ("job", "operator")
NEEDED = {
    (kind.group, f"{kind.plural}/{part}" if part else kind.plural, verb)
    for form in _FORMS
    for verb, kind, part in needed_rights(form)
}
"""API group, resource, verb. Learning the lead's address needs none besides: it gets a
Service and lists pods."""
