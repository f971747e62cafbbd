# SPDX-License-Identifier: MIT
"""Makes, keeps, resizes and deletes the objects of bursts."""
