# SPDX-License-Identifier: MIT
"""Read the file of an ensemble, and `[ensemble]` of the settings."""
