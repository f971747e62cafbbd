# SPDX-License-Identifier: MIT
"""External members of ensembles, which are instances of their own, and their agents."""
