# SPDX-License-Identifier: MIT
"""Followers in Google Kubernetes Engine."""
