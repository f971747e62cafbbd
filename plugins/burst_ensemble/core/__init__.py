# SPDX-License-Identifier: MIT
"""Decisions about ensembles, as pure functions: the time `now` is an argument."""
