# SPDX-License-Identifier: MIT
"""Installs the files that Flux itself loads: CLI plugin, frobnicator, scheduler."""
