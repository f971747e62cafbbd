# SPDX-License-Identifier: MIT
"""Followers in Amazon EKS, on node groups that are made for bursts."""
