# SPDX-License-Identifier: MIT
"""`python -m burst_embedded`: the same as `burst embedded`."""

from burst_embedded.commands import group

if __name__ == "__main__":
    group(prog_name="burst embedded")
