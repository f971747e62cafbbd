# SPDX-License-Identifier: MIT
"""The HTTP routes of the daemon for ensembles."""
