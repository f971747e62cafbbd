# SPDX-License-Identifier: MIT
"""Which provider, which rank slot and how many nodes each job that waits gets."""
