# SPDX-License-Identifier: MIT
"""Plans which provider, rank slot and how many nodes each job that waits gets."""
