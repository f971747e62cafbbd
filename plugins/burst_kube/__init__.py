# SPDX-License-Identifier: MIT
"""Followers as pods, in any cluster that one has access to."""

from burst_kube.provider import KubeProvider, KubeSettings

__all__ = ["KubeProvider", "KubeSettings"]
