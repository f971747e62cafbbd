# SPDX-License-Identifier: MIT
"""Measurements, each a ratio against a baseline of the same run."""
