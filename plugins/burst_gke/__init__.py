# SPDX-License-Identifier: MIT
"""Followers in Google Kubernetes Engine."""

from burst_gke.provider import GkeProvider
from burst_gke.settings import GkeSettings

__all__ = ["GkeProvider", "GkeSettings"]
