# SPDX-License-Identifier: MIT
"""Followers as tasks of jobs of another Flux instance."""

from burst_flux.provider import FluxProvider
from burst_flux.settings import FluxSettings

__all__ = ["FluxProvider", "FluxSettings"]
