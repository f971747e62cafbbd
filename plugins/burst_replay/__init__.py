# SPDX-License-Identifier: MIT
"""Replay a recorded workload under other rules, to see what it would have cost."""
