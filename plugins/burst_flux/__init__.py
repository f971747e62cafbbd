# SPDX-License-Identifier: MIT
"""Followers as tasks of jobs of another Flux instance."""
