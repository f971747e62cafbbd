# SPDX-License-Identifier: MIT
"""Followers in Google Kubernetes Engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burst_gke.provider import GkeProvider
    from burst_gke.settings import GkeSettings

__all__ = ["GkeProvider", "GkeSettings"]


def __getattr__(name: str) -> Any:
    # Commands import `burst_gke.provider_type` only. Google's SDK takes a second to
    # import, and need not be installed for that.
    if name == "GkeProvider":
        from burst_gke.provider import GkeProvider  # noqa: PLC0415

        return GkeProvider
    if name == "GkeSettings":
        from burst_gke.settings import GkeSettings  # noqa: PLC0415

        return GkeSettings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
