# SPDX-License-Identifier: MIT
"""Followers as pods of a kind cluster on this host, made on request."""
