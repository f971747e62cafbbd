# SPDX-License-Identifier: MIT
"""A recorded workload, tried again with other rules: what it would have cost."""
