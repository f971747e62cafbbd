# SPDX-License-Identifier: MIT
"""What the objects of a burst are made of: pods, and all that they mount and run."""
