# SPDX-License-Identifier: MIT
"""What several rooms' tests share."""
