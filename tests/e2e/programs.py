# SPDX-License-Identifier: MIT
"""This machine's programs, in pods and beside them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.kubelab.build import PAUSE_IMAGE
from tests.kubelab.cluster import Cluster
from tests.kubelab.pods import SYSTEM, flux_mounts, python_mounts, without_nested
from tests.support.pod_words import pod_words
from tests.support.waiting import HANG_S, wait_until

ROOT = Path(__file__).parents[2]
BURST = str(Path(sys.executable).with_name("burst"))
FLUX = shutil.which("flux") or ""
PATH = f"{Path(FLUX).parent}:/usr/bin:/bin"
ENVIRONMENT = {"PATH": PATH, "HOME": "/tmp"}
"""Of followers that run this machine's Flux."""
OPERATOR = "BURST_TEST_FLUX_OPERATOR"
"""Names the manager program of the Flux Operator, for tests that need it."""
MONTH = "BURST_TEST_MONTH"
"""How many jobs the test marked month has; it is skipped without."""
MONTH_JOBS = 1_000


def host_paths(*more: str, flux: bool = False) -> list[str]:
    """Return what pods have to see of this machine to run this package, and Flux."""
    paths = [*SYSTEM, str(ROOT), *python_mounts(sys.executable), *more]
    return [str(path) for path in without_nested(paths + flux_mounts() * flux)]


def provider_table(cluster: Cluster, namespace: str, **more: Any) -> dict[str, Any]:
    """Return a provider's table, with `more` keys or others of these.

    Its pods have an empty image, with this machine's Flux by `host_paths`.
    """
    return {
        "kubeconfig": str(cluster.kubeconfig),
        "namespace": namespace,
        "image": PAUSE_IMAGE,
        # Tests share the nodes: pods of one are not to keep out those of another.
        "one_per_node": False,
        "offers": {"nodes": {"cores": 1, "max_nodes": 4, "cpu": "100m"}},
        "host_paths": host_paths(flux=True),
        "flux": FLUX,
        "pod": pod_words(ENVIRONMENT),
        **more,
    }


@contextmanager
def running(command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Start a program that writes to the log; kill it in any case."""
    with log.open("wb") as file:
        process = subprocess.Popen(
            list(command), stdin=subprocess.DEVNULL, stdout=file, stderr=file
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def says(log: Path, text: str) -> None:
    """Wait until the log has the text."""
    wait_until(lambda: text in log.read_text(), lambda: f"{text!r}: {log.read_text()}")


def run(*command: str) -> str:
    """Return what the command prints; fail with what it says if it fails."""
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout
