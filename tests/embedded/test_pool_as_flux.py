# SPDX-License-Identifier: MIT
"""The embedded lead allocates as Flux does: compared with Flux's own Rv1Pool."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burst.embedded.jobspec import Wanted, build_jobspec
from burst.embedded.node import NodeResources
from burst.embedded.pool import Infeasible, ResourcePool
from burst.model.ranks import format_hostlist, format_idset
from burst.model.request import parse_request

pytestmark = [
    pytest.mark.flux,
    pytest.mark.skipif(not shutil.which("flux"), reason="no flux on PATH"),
]
PROPERTIES = ("fast", "slow")

Oracle = subprocess.Popen[str]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    script = Path(__file__).with_name("rv1pool.py")
    with subprocess.Popen(
        ["flux", "python", str(script)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        process.kill()


def nodes() -> st.SearchStrategy[list[NodeResources]]:
    drawn = st.tuples(
        st.integers(1, 5), st.integers(0, 2), st.frozensets(st.sampled_from(PROPERTIES))
    )
    return st.lists(drawn, min_size=1, max_size=5).map(
        lambda parts: [
            NodeResources(
                rank=rank,
                host=f"n{rank}",
                cores=frozenset(range(cores)),
                gpus=frozenset(range(gpus)),
                properties=properties,
            )
            for rank, (cores, gpus, properties) in enumerate(parts)
        ]
    )


def constraints() -> st.SearchStrategy[dict[str, Any]]:
    leaves = st.one_of(
        st.lists(
            st.sampled_from((*PROPERTIES, *(f"^{name}" for name in PROPERTIES))),
            max_size=2,
        ).map(lambda names: {"properties": names}),
        st.sampled_from(["n[0-1]", "n0,n3", "n4"]).map(lambda x: {"hostlist": [x]}),
        st.sampled_from(["0-1", "2", "0,3-4"]).map(lambda x: {"ranks": x}),
    )
    return st.recursive(
        leaves,
        lambda below: st.one_of(
            st.lists(below, max_size=2).map(lambda parts: {"and": parts}),
            st.lists(below, max_size=2).map(lambda parts: {"or": parts}),
            below.map(lambda part: {"not": [part]}),
        ),
        max_leaves=4,
    )


def jobspecs() -> st.SearchStrategy[dict[str, Any]]:
    def build(
        wanted: Wanted, exclusive: bool, constraint: dict[str, Any] | None
    ) -> dict[str, Any]:
        each = Wanted(
            nodes=wanted.nodes,
            slots=wanted.slots * (wanted.nodes or 1),
            cores=wanted.cores,
            gpus=wanted.gpus,
        )
        system = {"constraints": constraint} if constraint else {}
        jobspec = build_jobspec(["true"], each, system)
        if exclusive:
            jobspec["resources"][0]["exclusive"] = True
        return jobspec

    wanted = st.builds(
        Wanted,
        nodes=st.integers(0, 4),
        slots=st.integers(0, 4),
        cores=st.integers(1, 4),
        gpus=st.integers(0, 2),
    )
    return st.builds(build, wanted, st.booleans(), st.none() | constraints())


def as_r(pool: list[NodeResources]) -> dict[str, Any]:
    def entry(node: NodeResources) -> dict[str, Any]:
        children = {"core": format_idset(node.cores)}
        if node.gpus:
            children["gpu"] = format_idset(node.gpus)
        return {"rank": str(node.rank), "children": children}

    return {
        "version": 1,
        "execution": {
            "R_lite": [entry(node) for node in pool],
            "nodelist": [format_hostlist(node.host for node in pool)],
            "properties": {
                name: format_idset(n.rank for n in pool if name in n.properties)
                for name in PROPERTIES
                if any(name in node.properties for node in pool)
            },
            "starttime": 0,
            "expiration": 0,
        },
    }


def answer(pool: ResourcePool, jobspec: dict[str, Any]) -> Any:
    try:
        found = pool.allocate(parse_request(jobspec))
    except Infeasible as error:
        return str(error)
    return found and {
        str(rank): [sorted(share.cores), sorted(share.gpus)]
        for rank, share in found.items()
    }


@settings(max_examples=300, deadline=None)
@given(
    nodes(),
    st.frozensets(st.integers(0, 4)),
    st.lists(jobspecs(), min_size=1, max_size=6),
)
def test_the_same_jobs_get_the_same(
    oracle: Oracle,
    given_nodes: list[NodeResources],
    up: frozenset[int],
    jobs: list[Any],
) -> None:
    up &= {node.rank for node in given_nodes}
    case = {"R": as_r(given_nodes), "up": format_idset(up), "jobspecs": jobs}
    assert oracle.stdin is not None
    assert oracle.stdout is not None
    oracle.stdin.write(json.dumps(case) + "\n")
    oracle.stdin.flush()
    expected = json.loads(oracle.stdout.readline())
    pool = ResourcePool(given_nodes)
    pool.online |= up
    assert [answer(pool, jobspec) for jobspec in jobs] == expected
