# SPDX-License-Identifier: MIT
"""What a lead needs: broker.toml, R, rank slots, certificate and service unit."""
