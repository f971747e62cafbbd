# SPDX-License-Identifier: MIT
"""Ensembles in the daemon's process, or beside it."""
