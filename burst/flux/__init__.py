# SPDX-License-Identifier: MIT
"""The lead on a real Flux instance. Only `handle.py` touches Flux's own Python."""

from burst.flux.lead import FluxLead, connect

__all__ = ["FluxLead", "connect"]
