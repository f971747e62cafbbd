# SPDX-License-Identifier: MIT
"""Tests marked e2e, on real nodes made for them: `python -m tests.e2e [PYTEST...]`."""

from __future__ import annotations

import os
import sys

from tests.kubelab import nodes
from tests.kubelab.build import Unavailable
from tests.kubernetes.access import CRD


def main() -> int:
    """Run; where there can be no nodes, say why, and with CI set fail for it."""
    options = ["--crd", os.environ[CRD]] if CRD in os.environ else []
    pytest = [sys.executable, "-m", "pytest", "-q", "-rs", "-m", "e2e", *sys.argv[1:]]
    try:
        return int(nodes.run(pytest, options))
    except Unavailable as missing:
        sys.stderr.write(f"e2e: SKIPPED, all of it: {missing}\n")
        return 1 if os.environ.get("CI") else 0


if __name__ == "__main__":
    sys.exit(main())
