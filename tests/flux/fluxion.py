# SPDX-License-Identifier: MIT
"""Leads that Fluxion schedules, for tests; `tests/support/fluxion.py` finds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.flux_instance import FLUX, FluxInstance
from tests.flux_instance import MISSING as NO_FLUX
from tests.support.fluxion import MISSING, QMANAGER, RESOURCE, find_fluxion

needs_fluxion = pytest.mark.skipif(
    not FLUX or find_fluxion() is None, reason=NO_FLUX if not FLUX else MISSING
)


def scheduled(
    queue_policy: str, match_policy: str = "first", **more: Any
) -> Mapping[str, Any]:
    """Return tables of a lead's configuration; `use_fluxion` has it go by them."""
    return {
        QMANAGER: {"queue-policy": queue_policy},
        RESOURCE: {"match-policy": match_policy, "match-format": "rv1_nosched"},
        **more,
    }


def use_fluxion(instance: FluxInstance) -> None:
    """Have a lead be scheduled by Fluxion instead of sched-simple."""
    fluxion = find_fluxion()
    assert fluxion is not None
    instance.flux("module", "remove", "-f", "sched-simple")
    instance.flux("module", "load", fluxion.module(RESOURCE))
    instance.flux("module", "load", fluxion.module(QMANAGER))
