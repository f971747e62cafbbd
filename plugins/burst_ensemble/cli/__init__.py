# SPDX-License-Identifier: MIT
"""The commands of `burst ensemble`, except those that other packages add."""

from __future__ import annotations

from burst_ensemble.cli.check import ensemble
from burst_ensemble.cli.run import down, resize, run, status, submit, up

for _command in (run, up, status, submit, resize, down):
    ensemble.add_command(_command)

__all__ = ["ensemble"]
