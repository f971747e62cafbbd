# SPDX-License-Identifier: MIT
"""`examples/interactive` at a real instance, by a kubectl that is played."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.flux_instance import FLUX
from tests.flux_pool import FluxPool
from tests.support.waiting import HANG_S

pytestmark = pytest.mark.flux
EXAMPLE = Path(__file__).parents[2] / "examples" / "interactive"
KUBECTL = """\
#!/bin/sh
echo "$*" > {asked}
while [ "$1" != -- ]; do shift; done
shift
exec "$@"
"""
CODE = """\
import sys
import interactive
handle = interactive.connect("lead-0-x7k2p", "jobs", sys.argv[1])
print(interactive.run_on_all(handle, ["sh", "-c", "echo $FLUX_JOB_NNODES"]))
"""


def test_a_handle_goes_through_kubectl_exec(
    flux_pool: FluxPool, tmp_path: Path
) -> None:
    kubectl, asked = tmp_path / "kubectl", tmp_path / "asked"
    kubectl.write_text(KUBECTL.format(asked=asked))
    kubectl.chmod(0o700)
    outside = {k: v for k, v in os.environ.items() if not k.startswith("FLUX_")}
    path = f"{tmp_path}:{Path(FLUX).parent}:{outside['PATH']}"
    with flux_pool.lend() as instance:
        socket = instance.uri.removeprefix("local://")
        done = subprocess.run(
            [FLUX, "python", "-c", CODE, socket],
            env={**outside, "PATH": path, "PYTHONPATH": str(EXAMPLE)},
            capture_output=True,
            text=True,
            timeout=HANG_S,
            check=False,
        )
        assert (done.stdout, done.returncode) == ("['1\\n']\n", 0), done.stderr
        words = asked.read_text().split()
    pod = ["-n", "jobs", "lead-0-x7k2p", "-c", "broker"]
    assert words[:8] == ["exec", "-i", *pod, "--"]
    assert words[-3:] == ["flux", "relay", socket]
