# SPDX-License-Identifier: MIT
"""Followers that a site's own program begins, lists and ends."""
