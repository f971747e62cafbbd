# SPDX-License-Identifier: MIT
"""What is imported in the process from which `tests.support.forked` forks programs."""

from __future__ import annotations

import gc
import importlib

from tests.flux_instance import FLUX, flux_bindings

# pytest is the main program here, which each of the forked imports.
OURS = (
    "pytest",
    "burst.cli.daemon",
    "burst.daemon",
    "burst_embedded.follower",
    "burst_embedded.lead",
    "burst_embedded.lead_client",
    "burst.flux.lead",
    "burst_local.provider",
)
FLUXES = ("cli.bulksubmit", "cli.submit", "hostlist", "job.list", "resource")

for name in OURS:
    importlib.import_module(name)
if FLUX:
    flux_bindings()
    for name in FLUXES:
        importlib.import_module(f"flux.{name}")
# Else the first collection of garbage in each would write to all that they share.
gc.collect()
gc.freeze()
