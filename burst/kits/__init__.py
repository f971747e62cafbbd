# SPDX-License-Identifier: MIT
"""Helpers for authors of providers. The core never imports them."""
