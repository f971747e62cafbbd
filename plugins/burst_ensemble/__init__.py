# SPDX-License-Identifier: MIT
"""Ensembles: members that grow, shrink, get jobs and end as algorithms decide."""
