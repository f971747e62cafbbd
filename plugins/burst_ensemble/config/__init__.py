# SPDX-License-Identifier: MIT
"""The file of an ensemble, and `[ensemble]` of the settings."""
