# SPDX-License-Identifier: MIT
"""Metrics for Prometheus: `catalog.py` names them, `collector.py` has their values."""
