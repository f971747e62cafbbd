# SPDX-License-Identifier: MIT
"""Followers as pods, in any existing cluster."""

from burst_kube.provider import KubeProvider, KubeSettings

__all__ = ["KubeProvider", "KubeSettings"]
