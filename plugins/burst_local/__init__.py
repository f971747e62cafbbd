# SPDX-License-Identifier: MIT
"""Followers as processes on this host."""
