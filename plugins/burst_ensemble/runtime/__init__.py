# SPDX-License-Identifier: MIT
"""Ensembles in the daemon's process, and agents beside members."""
