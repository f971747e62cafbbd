# SPDX-License-Identifier: MIT
"""Bursting for Flux: lend an instance nodes it does not own, for as long as needed."""

__version__ = "0.1.0"
