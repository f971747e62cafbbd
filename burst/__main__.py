# SPDX-License-Identifier: MIT
"""The programs `burst`, which is `python -m burst`, too, and `run-burst`.

Ctrl-C ends them quietly from their first moment, so all else is imported later: that
takes tenths of a second.
"""

from __future__ import annotations

import sys

from burst.model.exit_status import INTERRUPTED


def main() -> None:
    """Run `burst`."""
    try:
        from burst.cli import main  # noqa: PLC0415

        main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def run_burst() -> None:
    """Run `run-burst`."""
    try:
        from burst.cli.run_burst import main  # noqa: PLC0415

        main()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
