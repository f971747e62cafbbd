# SPDX-License-Identifier: MIT
"""The algorithms that are part of this project, a file each."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from burst_ensemble.core.algorithms.cost import Cost
from burst_ensemble.core.algorithms.more_jobs import MoreJobs
from burst_ensemble.core.algorithms.random_selection import RandomSelection
from burst_ensemble.core.algorithms.runtime import FastestRuntime, LongestRuntime
from burst_ensemble.core.algorithms.stop import Stop
from burst_ensemble.core.algorithms.triggers import Triggers
from burst_ensemble.core.algorithms.workload_demand import WorkloadDemand
from burst_ensemble.core.algorithms.workload_success import WorkloadSuccess

BUILT_IN: Mapping[str, Any] = MappingProxyType(
    {
        "workload-demand": WorkloadDemand,
        "stop": Stop,
        "more-jobs": MoreJobs,
        "random-selection": RandomSelection,
        "workload-success": WorkloadSuccess,
        "select-fastest-runtime": FastestRuntime,
        "select-longest-runtime": LongestRuntime,
        "cost": Cost,
        "triggers": Triggers,
    }
)
"""By the name that the file has; entry points cannot replace them."""
