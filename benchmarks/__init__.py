# SPDX-License-Identifier: MIT
"""Benchmarks: each compares a measurement with a baseline of the same run."""
