# SPDX-License-Identifier: MIT
"""Renders the objects of a burst: its pods, and all that they mount and run."""
