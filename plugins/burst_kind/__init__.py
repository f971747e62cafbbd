# SPDX-License-Identifier: MIT
"""Followers as pods of a kind cluster on this host, made on request."""

from burst_kind.provider import KindProvider
from burst_kind.settings import KindSettings

__all__ = ["KindProvider", "KindSettings"]
