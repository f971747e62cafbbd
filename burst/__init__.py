# SPDX-License-Identifier: MIT
"""Bursting for Flux: lend an instance nodes it does not own, for as long as needed."""

# As in pyproject.toml, which a test compares: importlib.metadata takes 30 ms to import.
__version__ = "0.1.0"
