# SPDX-License-Identifier: MIT
"""Followers as tasks of Slurm jobs."""
