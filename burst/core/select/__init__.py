# SPDX-License-Identifier: MIT
"""Which pending jobs want a burst, and which jobs are held, released or left alone."""
