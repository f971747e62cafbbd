# SPDX-License-Identifier: MIT
"""`python -m burst_embedded`: the same as `burst embedded`."""

from burst.cli.target import run_command
from burst_embedded.commands import group

if __name__ == "__main__":
    run_command(group)
