# SPDX-License-Identifier: MIT
"""What Prometheus reads: `catalog.py` names each metric, `collector.py` gives them."""
