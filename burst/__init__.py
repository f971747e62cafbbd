# SPDX-License-Identifier: MIT
"""Bursting for Flux: lend an instance nodes it does not own, for as long as needed."""

from importlib.metadata import version

__version__ = version("flux-burst-orchestrator")
