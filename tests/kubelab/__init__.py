# SPDX-License-Identifier: MIT
"""A real Kubernetes for tests, out of nothing but package registries: see README.md."""
