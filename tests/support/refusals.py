# SPDX-License-Identifier: MIT
"""What a tick leaves to the next one, without what only spares work."""

from __future__ import annotations

import msgspec

from burst.core.plan.refusal_cache import RefusalCache


def without_refusals(cache: RefusalCache | None) -> RefusalCache | None:
    """Return what it says of the jobs that decides: all of them are judged anew."""
    if cache is None:
        return None
    return msgspec.structs.replace(cache, decisions={}, outdated=())
