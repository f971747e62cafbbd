# SPDX-License-Identifier: MIT
"""Followers in Amazon EKS, on node groups that are made for bursts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burst_eks.provider import EksProvider
    from burst_eks.settings import EksSettings

__all__ = ["EksProvider", "EksSettings"]


def __getattr__(name: str) -> Any:
    # Commands import `burst_eks.provider_type` only. Amazon's SDK takes half a second
    # to import, and need not be installed for that.
    if name == "EksProvider":
        from burst_eks.provider import EksProvider  # noqa: PLC0415

        return EksProvider
    if name == "EksSettings":
        from burst_eks.settings import EksSettings  # noqa: PLC0415

        return EksSettings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
