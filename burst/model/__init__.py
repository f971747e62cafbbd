# SPDX-License-Identifier: MIT
"""Values. No input or output, no clock, no decision."""
