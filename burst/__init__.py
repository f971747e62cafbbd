# SPDX-License-Identifier: MIT
"""Bursting for Flux: lend an instance nodes it does not own, for as long as needed."""

# The same as in pyproject.toml (a test compares them): to read it with
# importlib.metadata would take 30 ms.
__version__ = "0.1.0"
