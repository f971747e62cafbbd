# SPDX-License-Identifier: MIT
"""How jobs come to the daemon on a real Flux: what Flux itself loads, and each mode."""
