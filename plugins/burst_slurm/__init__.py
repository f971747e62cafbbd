# SPDX-License-Identifier: MIT
"""Followers as tasks of Slurm jobs."""

from burst_slurm.provider import SlurmProvider
from burst_slurm.settings import SlurmSettings

__all__ = ["SlurmProvider", "SlurmSettings"]
