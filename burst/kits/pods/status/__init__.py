# SPDX-License-Identifier: MIT
"""The status of bursts and followers, from their objects, events and logs."""
