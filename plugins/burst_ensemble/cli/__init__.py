# SPDX-License-Identifier: MIT
"""`burst ensemble`."""

from __future__ import annotations

from burst_ensemble.cli.agent import agent
from burst_ensemble.cli.check import ensemble
from burst_ensemble.cli.replay import replay
from burst_ensemble.cli.run import down, resize, run, status, submit, up

for _command in (replay, agent, run, up, status, submit, resize, down):
    ensemble.add_command(_command)

__all__ = ["ensemble"]
