# SPDX-License-Identifier: MIT
"""Helper modules for authors of providers. The core never imports them."""
