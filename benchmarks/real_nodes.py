# SPDX-License-Identifier: MIT
"""Run a benchmark in a Kubernetes of two real kubelets, which is made for the run."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
from collections.abc import Callable, Collection, Sequence

from benchmarks.table import Measure, Skipped, main_of
from tests.kubelab import nodes
from tests.kubelab.build import Unavailable
from tests.kubelab.cluster import Joined

_INSIDE = "KUBELAB"


def given_cluster() -> Joined:
    """Return the cluster that this program runs in. Raises Skipped without one."""
    if _INSIDE not in os.environ:
        raise Skipped("no real nodes: they need root, Debian, Go and a flux on PATH")
    return Joined(os.environ[_INSIDE])


def main_on_nodes(
    module: str,
    doc: str | None,
    measure: Callable[..., Sequence[Measure]],
    programs: Collection[str],
    **numbers: tuple[int, str],
) -> None:
    """Run a benchmark as `main_of` does, on nodes that are made first if necessary.

    `module` is then run again on the nodes. If one of `programs` is not on PATH, no
    nodes are made, and `measure` says so.
    """
    missing = any(shutil.which(program) is None for program in programs)
    helps = {"-h", "--help"} & set(sys.argv)
    if _INSIDE not in os.environ and not missing and not helps:
        again = [sys.executable, "-m", module, *sys.argv[1:]]
        # If nodes cannot be made here, `measure` says so, as text or JSON.
        with contextlib.suppress(Unavailable):
            sys.exit(int(nodes.run(again)))  # type: ignore[no-untyped-call]
    main_of(doc, measure, **numbers)
