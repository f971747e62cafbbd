# SPDX-License-Identifier: MIT
"""`python -m burst`: the same as `burst`."""

from burst.cli import main

if __name__ == "__main__":
    main()
