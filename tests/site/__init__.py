# SPDX-License-Identifier: MIT
"""A site's Flux on hosts of its own, as a laboratory configures it, and ours added."""
