# SPDX-License-Identifier: MIT
"""Followers as pods of a kind cluster on this host, made on request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from burst_kind.provider import KindProvider
    from burst_kind.settings import KindSettings

__all__ = ["KindProvider", "KindSettings"]


def __getattr__(name: str) -> Any:
    # Commands import `burst_kind.provider_type` only. The Kubernetes client takes a
    # second to import, and need not be installed for that.
    if name == "KindProvider":
        from burst_kind.provider import KindProvider  # noqa: PLC0415

        return KindProvider
    if name == "KindSettings":
        from burst_kind.settings import KindSettings  # noqa: PLC0415

        return KindSettings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
