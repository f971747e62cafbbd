# SPDX-License-Identifier: MIT
"""Followers on virtual machines of a cloud."""

from burst_vm.provider import VmProvider
from burst_vm.settings import VmSettings

__all__ = ["VmProvider", "VmSettings"]
