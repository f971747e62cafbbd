# SPDX-License-Identifier: MIT
"""`python -m burst.embedded`: the same as `burst embedded`."""

from burst.embedded.commands import group

if __name__ == "__main__":
    group(prog_name="burst embedded")
