# SPDX-License-Identifier: MIT
"""Followers as pods, in any existing cluster."""
