# SPDX-License-Identifier: MIT
"""Followers as pods, in any existing cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burst_kube.provider import KubeProvider, KubeSettings

__all__ = ["KubeProvider", "KubeSettings"]


def __getattr__(name: str) -> Any:
    # Commands import `burst_kube.provider_type` only. The Kubernetes client takes a
    # second to import, and need not be installed for that.
    if name == "KubeProvider":
        from burst_kube.provider import KubeProvider  # noqa: PLC0415

        return KubeProvider
    if name == "KubeSettings":
        from burst_kube.provider import KubeSettings  # noqa: PLC0415

        return KubeSettings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
