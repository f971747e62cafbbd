# SPDX-License-Identifier: MIT
"""Followers on virtual machines of a cloud."""
