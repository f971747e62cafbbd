# SPDX-License-Identifier: MIT
"""Tests that need real pods, each in a world made for it: `python -m tests.e2e [...]`.

Those marked e2e get real nodes, those marked kind a docker for kind's clusters.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from tests.e2e.programs import OPERATOR
from tests.e2e.shellimage import write_images
from tests.kubelab import nodes
from tests.kubelab.build import Unavailable
from tests.kubelab.kind import lab
from tests.kubernetes.access import CRD

# pytest's, where the arguments choose no test of this mark.
_NO_TESTS = 5


def main() -> int:
    """Run; where there can be no such world, say why; without nodes CI is to fail."""
    statuses = {_run("e2e"), _run("kind")}
    if statuses == {_NO_TESTS}:
        return _NO_TESTS
    return max(statuses - {_NO_TESTS})


def _run(mark: str) -> int:
    # Pods come and go in seconds, but a machine may have other work.
    pytest = [sys.executable, "-m", "pytest", "-q", "-rs", "-m", mark]
    pytest += ["--timeout=300", *sys.argv[1:]]
    try:
        status = _run_on_nodes(pytest) if mark == "e2e" else lab.run(pytest)
    except Unavailable as missing:
        sys.stderr.write(f"{mark}: SKIPPED, all of it: {missing}\n")
        # A docker is a person's to install; the nodes are made of what is fetched.
        return 1 if os.environ.get("CI") and mark == "e2e" else 0
    return int(status)


def _run_on_nodes(pytest: list[str]) -> int:
    options = ["--crd", os.environ[CRD]] if CRD in os.environ else []
    if OPERATOR not in os.environ:
        return int(nodes.run(pytest, options))
    with tempfile.TemporaryDirectory() as place:
        for image in write_images(Path(place)):
            options += ["--image", str(image)]
        return int(nodes.run(pytest, options))


if __name__ == "__main__":
    sys.exit(main())
