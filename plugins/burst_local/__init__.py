# SPDX-License-Identifier: MIT
"""Followers as processes on this host."""

from burst_local.provider import LocalProvider, LocalSettings

__all__ = ["LocalProvider", "LocalSettings"]
