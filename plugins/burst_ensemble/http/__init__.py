# SPDX-License-Identifier: MIT
"""What the daemon answers over HTTP about ensembles."""
