# SPDX-License-Identifier: MIT
"""Members of ensembles that are instances of their own, and the agents beside these."""
