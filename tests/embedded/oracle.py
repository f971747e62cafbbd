# SPDX-License-Identifier: MIT
"""Flux's own Rv1Pool, and what it is asked: pools of nodes, and constraints."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from hypothesis import strategies as st

from burst.model.ranks import format_idset
from burst.model.shape import Shape
from tests.flux_instance import FLUX

PROPERTIES = ("fast", "slow")
MOST_NODES = 5


class Oracle:
    """Flux's own pool, in a process of Flux's own Python."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def answers(self, resources: Any, up: str, jobspecs: list[Any]) -> list[Any]:
        """Allocate one after the other; return each answer as `rv1pool.py` has it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        case = {"R": resources, "up": up, "jobspecs": jobspecs}
        self._process.stdin.write(json.dumps(case) + "\n")
        self._process.stdin.flush()
        found: list[Any] = json.loads(self._process.stdout.readline())
        return found

    def fits(self, resources: Any, up: str, jobspecs: list[Any]) -> list[Any]:
        """Allocate one after the other; return whether each fits, None for never."""
        answers = self.answers(resources, up, jobspecs)
        return [None if isinstance(each, str) else bool(each) for each in answers]


@contextmanager
def open_oracle() -> Iterator[Oracle]:
    """Yield an oracle; its process ends with the block."""
    script = Path(__file__).with_name("rv1pool.py")
    with subprocess.Popen(
        [FLUX, "python", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield Oracle(process)
        process.kill()


class Node(msgspec.Struct, frozen=True):
    """One rank of a pool."""

    shape: Shape
    properties: frozenset[str] = frozenset()


def as_r(nodes: list[Node]) -> dict[str, Any]:
    """Return R (RFC 20) of these nodes, by rank."""

    def children(shape: Shape) -> dict[str, str]:
        cores = {"core": format_idset(range(shape.cores))}
        return cores | ({"gpu": format_idset(range(shape.gpus))} if shape.gpus else {})

    def having(name: str) -> str:
        ranks = (rank for rank, node in enumerate(nodes) if name in node.properties)
        return format_idset(ranks)

    execution = {
        "R_lite": [
            {"rank": str(rank), "children": children(node.shape)}
            for rank, node in enumerate(nodes)
        ],
        "nodelist": [f"n[0-{len(nodes) - 1}]"],
        "properties": {name: having(name) for name in PROPERTIES if having(name)},
        "starttime": 0,
        "expiration": 0,
    }
    return {"version": 1, "execution": execution}


SHAPES = st.builds(Shape, st.integers(1, 5), st.integers(0, 2))
NODES = st.builds(Node, SHAPES, st.frozensets(st.sampled_from(PROPERTIES)))
POOLS = st.lists(NODES, min_size=1, max_size=MOST_NODES)
LEAVES = (
    st.lists(
        st.sampled_from([*PROPERTIES, *(f"^{name}" for name in PROPERTIES)]),
        max_size=2,
    ).map(lambda names: {"properties": names})
    | st.sampled_from(["n[0-1]", "n0,n3", "n4", "n[1-9]"]).map(
        lambda hosts: {"hostlist": [hosts]}
    )
    | st.sampled_from(["0-1", "2", "0,3-4", "7"]).map(lambda ids: {"ranks": [ids]})
)
CONSTRAINTS = st.recursive(
    LEAVES,
    lambda below: (
        st.lists(below, max_size=3).map(lambda parts: {"and": parts})
        | st.lists(below, max_size=3).map(lambda parts: {"or": parts})
        | below.map(lambda part: {"not": [part]})
    ),
    max_leaves=4,
)
