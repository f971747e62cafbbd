# SPDX-License-Identifier: MIT
"""What is decided about ensembles; pure, `now` is an argument."""
