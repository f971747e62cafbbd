# SPDX-License-Identifier: MIT
"""Followers that a site's own program begins, lists and ends."""

from burst_command.provider import CommandProvider
from burst_command.settings import CommandSettings

__all__ = ["CommandProvider", "CommandSettings"]
