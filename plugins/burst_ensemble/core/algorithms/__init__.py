# SPDX-License-Identifier: MIT
"""The algorithms that are part of this package, one in each file."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from burst_ensemble.core.algorithms.more_jobs import MoreJobs
from burst_ensemble.core.algorithms.stop import Stop
from burst_ensemble.core.algorithms.triggers import Triggers
from burst_ensemble.core.algorithms.workload_demand import WorkloadDemand

BUILT_IN: Mapping[str, Any] = MappingProxyType(
    {
        "workload-demand": WorkloadDemand,
        "stop": Stop,
        "more-jobs": MoreJobs,
        "triggers": Triggers,
    }
)
"""The algorithms, by their name in the file; entry points cannot replace them."""
