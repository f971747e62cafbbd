# SPDX-License-Identifier: MIT
"""Members that are simulated, for `burst ensemble replay`."""
