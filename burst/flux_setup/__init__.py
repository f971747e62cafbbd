# SPDX-License-Identifier: MIT
"""What Flux itself loads (CLI plugin, frobnicator, scheduler), and its installation."""
