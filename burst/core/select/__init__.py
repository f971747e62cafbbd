# SPDX-License-Identifier: MIT
"""Decides which pending jobs want a burst, and which jobs are held or released."""
