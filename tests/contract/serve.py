# SPDX-License-Identifier: MIT
"""A process that serves at a lead until its standard input ends, or it is killed.

python -m tests.contract.serve MODULE:FUNCTION URI
"""

from __future__ import annotations

import importlib
import os
import sys

from burst.lead import Lead
from tests.contract.serving import answer


def main(opener: str, uri: str) -> None:
    """Serve, say so, and wait."""
    module, _, function = opener.partition(":")
    lead: Lead = getattr(importlib.import_module(module), function)(uri)
    lead.serve(answer, {"pid": os.getpid(), "host": "here", "since": 0.0})
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    sys.stdin.read()
    lead.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
