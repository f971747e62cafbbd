# SPDX-License-Identifier: MIT
"""Checks whether followers can run in a cluster, and reach their lead."""
